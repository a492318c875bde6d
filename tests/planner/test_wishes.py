"""What want fixes reaches the plan, or is refused where the format has no such thing."""

import json
from pathlib import Path

import pytest

from dsgen.cli import main
from dsgen.errors import RefusedError
from dsgen.plan import BucketWishes, SwapWishes, Wishes
from dsgen.planner.wishes import wishes_of
from dsgen.spec.read import spec_from_text

SPEC = "model: llama-2-7b\nhardware: {gpu: a100-80gb-sxm, gpus_per_node: 8, host_memory: 1TiB}\n"


def test_sizes_and_switches_are_wishes() -> None:
    want = "want: {buckets: {reduce: 2e8, sub_group_size: 1B}, swap: {pin_memory: false}, overlap_comm: true}\n"
    assert wishes_of(spec_from_text(SPEC + want)) == Wishes(
        buckets=BucketWishes(reduce=200_000_000, sub_group_size=10**9),
        swap=SwapWishes(pin_memory=False),
        overlap_comm=True,
    )


def test_they_are_obeyed_whatever_else_is_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    want = (
        "want: {zero_stage: 3, offload_optimizer: cpu, overlap_comm: false, gradient_precision: bf16, micro_batch: 1, "
        "accumulation: 2, buckets: {reduce: 12345678, max_live_parameters: 7e8}, swap: {pin_memory: false}}\n"
    )
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC + want, encoding="utf-8")
    assert main(["plan", str(file), "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["overlap_comm"] is False
    assert plan["gradient_precision"] in (None, "bf16")  # the compute type either way; dsgen would take fp32
    assert plan["buckets"]["reduce"] == 12_345_678
    assert plan["buckets"]["max_live_parameters"] == 700_000_000
    assert plan["swap"]["pin_memory"] is False


@pytest.mark.parametrize(
    ("want", "format"),
    [
        ("buckets: {reduce: 5e8}", "fsdp2"),
        ("swap: {pin_memory: true}", "fsdp2"),
        ("overlap_comm: true", "fsdp2"),
        ("reduce_each_micro_batch: true", "deepspeed"),
    ],
)
def test_what_the_format_has_not_is_refused_at_its_place(want: str, format: str) -> None:
    spec = spec_from_text(f"{SPEC}want: {{{want}}}\ntarget: {{format: {format}}}\n", "spec.yaml")
    with pytest.raises(RefusedError, match=rf"spec.yaml:3:.*{format} has no"):
        wishes_of(spec)


def test_a_size_that_deepspeed_asserts_against_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(SPEC + "want: {zero_stage: 2, buckets: {allgather: 300000001}}\n", encoding="utf-8")
    assert main(["plan", str(file)]) == 1
    assert "must be even" in capsys.readouterr().err
