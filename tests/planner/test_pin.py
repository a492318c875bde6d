"""A pinned spec says its plan, keeps everything else that its author wrote, and is pinned once."""

from typing import Any

import pytest
import yaml

from dsgen.planner.job import decide_spec
from dsgen.planner.pin import with_pins
from dsgen.spec.read import spec_from_text

HARDWARE = "hardware: {gpu: a100-80gb-sxm, gpus_per_node: 8, host_memory: 1TiB}\n"
SPECS = {
    "no wishes": f"# ours\nmodel: llama-2-7b  # seven billion\n{HARDWARE}"
    "training: {sequence_length: 4096, global_batch: 128}\n",
    "a block": f"model: llama-2-7b\n{HARDWARE}want:\n    # must be\n    zero_stage: 3  # we say so\n\n"
    "training:\n  global_batch: 64\n",
    "a flow mapping": f"model: llama-2-7b\n{HARDWARE}want: {{zero_stage: 2, checkpointing: full}}  # both\n"
    "training: {global_batch: 64}\n",
    "a trailing comma": f"model: llama-2-7b\n{HARDWARE}want: {{zero_stage: 2,}}\n",
    "a comment in a flow mapping": f"model: llama-2-7b\n{HARDWARE}want: {{\n  zero_stage: 2,  # two\n"
    "  checkpointing: full  # all\n}\n",
    "a comma and a comment": f"model: llama-2-7b\n{HARDWARE}want: {{\n  zero_stage: 2,  # two\n}}\n",
    "an empty want with a comment": f"model: llama-2-7b\n{HARDWARE}want: {{# nothing\n}}\n",
    "an empty want": f"model: llama-2-7b\n{HARDWARE}want: {{}}\ntraining: {{global_batch: 64}}\n",
    "a null want": f"model: llama-2-7b\nwant:\n{HARDWARE}",
    "a tilde": f"model: llama-2-7b\nwant: ~  # nothing\n{HARDWARE}",
    "want at the end, unfinished": f"model: llama-2-7b\n{HARDWARE}want:\n  zero_stage: 1",
    "no line end": f"model: llama-2-7b\n{HARDWARE}".rstrip("\n"),
    "one line": "{model: llama-2-7b, hardware: {gpu: a100, gpus_per_node: 8}}\n",
    "JSON": '{\n  "model": "llama-2-7b",\n  "hardware": {"gpu": "a100", "gpus_per_node": 8}\n}\n',
    "windows": f"# ours\r\nmodel: llama-2-7b\r\n{HARDWARE.strip()}\r\nwant:\r\n  zero_stage: 2\r\n",
    "quoted keys": f'"model": llama-2-7b\n{HARDWARE}"want":\n  "zero_stage": 2\n',
    "max": f"model: llama-2-7b\n{HARDWARE}training: {{sequence_length: max, global_batch: 8}}\n"
    "want: {micro_batch: max}\n",
    "precision": f"model: llama-2-7b\n{HARDWARE}training:\n  # the card decides\n  precision: auto\n",
    "selective": f"model: llama-2-7b\n{HARDWARE}want: {{checkpointing: {{every: 2}}}}\n",
    "nvme": "model: llama-2-13b\nhardware:\n  gpu: rtx-4090\n  gpus_per_node: 1\n  host_memory: 64GiB\n"
    "  nvme: {path: /local_nvme, size: 7TB}\ntraining: {sequence_length: 2048, global_batch: 8}\n",
    "fsdp2": f"model: llama-2-7b\n{HARDWARE}training: {{global_batch: 64}}\ntarget: {{format: fsdp2}}\n",
    "several nodes": "model: llama-3.1-70b\nhardware: {gpu: h100-80gb-sxm, gpus_per_node: 8, nodes: 4}\n"
    "training: {global_batch: 128}\n",
    "the Trainer": "model: mistral-7b-v0.3\nhardware: {gpu: l40s, gpus_per_node: 8}\n"
    "target: {loaded_by: transformers}\ntraining: {global_batch: 64}\n",
}


def plan_of(text: str) -> Any:
    return decide_spec(spec_from_text(text)).decision.chosen.plan


def pinned(text: str) -> str:
    return with_pins(text, decide_spec(spec_from_text(text)), "spec.yaml")


@pytest.mark.parametrize("name", SPECS)
def test_the_pinned_spec_has_this_plan_only_and_is_pinned_once(name: str) -> None:
    text = SPECS[name]
    after = pinned(text)
    assert plan_of(after) == plan_of(text)
    assert pinned(after) == after
    assert not decide_spec(spec_from_text(after)).decision.alternatives


@pytest.mark.parametrize("name", SPECS)
def test_what_was_there_stays(name: str) -> None:
    text = SPECS[name]
    after = pinned(text)
    said, says = yaml.safe_load(text), yaml.safe_load(after)
    assert list(says)[: len(said)] == list(said)
    for key in ("model", "hardware", "target"):
        assert says.get(key) == said.get(key)
    assert [line for line in text.splitlines() if line.lstrip().startswith("#")] == [
        line for line in after.splitlines() if line.lstrip().startswith("#")
    ]
    for comment in ("# seven billion", "# we say so", "# both", "# nothing", "# must be", "# two", "# all"):
        assert (comment in after) == (comment in text)
    if "\r\n" in text:
        assert after.count("\n") == after.count("\r\n")


def test_a_wish_that_already_says_it_keeps_its_spelling() -> None:
    text = f"model: llama-2-7b\n{HARDWARE}want: {{zero_stage: 3, buckets: {{reduce: 5e8}}}}\n"
    assert "reduce: 500000000" in pinned(text)
    again = pinned(text).replace("reduce: 500000000", "reduce: 5e8")
    assert pinned(again) == again


def test_a_pinned_plan_is_not_decided_anew_when_something_would_be_faster() -> None:
    after = pinned(SPECS["no wishes"])
    roomier = after.replace("a100-80gb-sxm", "b300-288gb-sxm")
    plan, other = plan_of(after), plan_of(roomier)
    assert plan == other
