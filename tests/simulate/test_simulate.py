"""What a simulation refuses, how it ends, and what the command shows."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from console import ROOT, dsgen
from grid import PLAIN, Case
from worlds import LLAMA_2_7B, hardware, plan, shapes_of

from dsgen.errors import DsgenError, MissingToolError, RefusedError
from dsgen.simulate.order import Order, refuse
from dsgen.simulate.run import simulate
from dsgen.spec.values import Method, Training
from dsgen.target import Target

SPEC = """\
model: {layers: 4, hidden: 2048, heads: 16, vocab: 32000}
hardware: {gpu: h100-80gb, gpus_per_node: 8}
training: {sequence_length: 512, global_batch: 8}
want: {checkpointing: full, zero_stage: 3}
target: {format: fsdp2}
"""


@pytest.mark.parametrize(
    ("word", "changes", "training"),
    [
        ("pipeline", {"pipeline_parallel": 2}, PLAIN),
        ("tensor", {"tensor_parallel": 2}, PLAIN),
        ("offload", {"offload_optimizer": "cpu"}, PLAIN),
        ("quantised", {}, Training(method=Method(type="lora", quantization="nf4"))),
        ("chunked", {}, Training(loss="chunked")),
    ],
)
def test_what_would_run_otherwise_is_refused(word: str, changes: dict[str, Any], training: Training) -> None:
    order = Order(
        plan=plan(**changes),
        shapes=shapes_of(LLAMA_2_7B),
        training=training,
        sequence_length=512,
        hardware=hardware(),
        target=Target(format="fsdp2"),
    )
    with pytest.raises(RefusedError, match=word):
        refuse(order)


def test_beyond_its_time_it_is_stopped() -> None:
    case = Case("fsdp2", "llama-2-7b", layers=4)
    with pytest.raises(DsgenError, match="took longer than"):
        simulate(plan(), case.shapes, PLAIN, 512, hardware(), Target(format="fsdp2"), timeout=0.2)


def test_without_torch_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A folder in front of all others whose torch is none.
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    case = Case("fsdp2", "llama-2-7b", layers=4)
    with pytest.raises(MissingToolError, match=r"(?s)torch is not installed.*pip install 'dsgen\[smoke\]'"):
        simulate(plan(), case.shapes, PLAIN, 512, hardware(), Target(format="fsdp2"))


def command(tmp_path: Path, *arguments: str, spec: str = SPEC) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    return dsgen("estimate", "spec.yaml", "--simulate", *arguments, cwd=tmp_path, timeout=300)


def test_the_command_shows_both_side_by_side(tmp_path: Path) -> None:
    ran = command(tmp_path, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    simulation = found["simulation"]
    assert [moment["name"] for moment in simulation["moments"]] == ["end of forward", "backward", "optimizer step"]
    assert simulation["peak"] == max(moment["total"] for moment in simulation["moments"])
    assert sum(simulation["parts"].values()) == pytest.approx(simulation["peak"], rel=1e-6)
    for moment, ledger in zip(simulation["moments"], found["ledger"]["device"]["moments"], strict=True):
        assert moment["formula"] == ledger["total"] - ledger["parts"]["framework"]
    assert simulation["peak"] == pytest.approx(max(moment["formula"] for moment in simulation["moments"]), rel=0.05)
    assert simulation["layers_simulated"] == [4]
    assert simulation["not_simulated"]


def test_what_cannot_be_simulated_is_still_accounted_for(tmp_path: Path) -> None:
    """Formula on stdout, the reason on stderr, exit code 1."""
    ran = command(tmp_path, spec=SPEC.replace("zero_stage: 3", "zero_stage: 3, offload_parameters: cpu"))
    assert ran.returncode == 1
    assert "offload" in ran.stderr
    assert "Memory of the fullest GPU" in ran.stdout
    assert "difference" not in ran.stdout
