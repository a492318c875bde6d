"""What no config can say is named with what to write instead; a script that would not do it is not written."""

from pathlib import Path

import pytest

from dsgen.errors import RefusedError
from dsgen.formats import writer
from dsgen.formats.values import Written
from dsgen.planner.job import decide_spec
from dsgen.spec.read import spec_from_text


def build(rest: str, training: str, *, folder: bool = False) -> Written:
    text = (
        f"model: tinyllama-1.1b\nhardware: {{gpu: a100-80gb-sxm, gpus_per_node: 2}}\ntraining: {{{training}}}\n{rest}"
    )
    job = decide_spec(spec_from_text(text, "spec.yaml", Path("/")))
    written: Written = writer(job.target.format).write(
        job.decision.chosen.plan,
        job.shapes,
        job.training,
        job.target,
        job.hardware,
        job.sequence_length,
        folder=folder,
    )
    return written


DEEPSPEED, FSDP2 = "", "target: {format: fsdp2}"
TRAINER = "target: {loaded_by: transformers}"
CASES = [
    (DEEPSPEED, "method: {type: qlora}", "quantization", "bnb_4bit_use_double_quant=True"),
    (DEEPSPEED, "method: {type: qlora, quantization: nf4-plain}", "quantization", "bnb_4bit_use_double_quant=False"),
    (DEEPSPEED, "method: {type: qlora, quantization: gptq8}", "quantization", "GPTQ has quantised to 8 bits"),
    (TRAINER, "method: {type: qlora}", "quantization", "BitsAndBytesConfig"),
    (DEEPSPEED, "freeze: [embed_tokens]", "freeze", "requires_grad_(False)"),
    (FSDP2, "freeze: [embed_tokens]", "freeze", "requires_grad_(False)"),
    (DEEPSPEED, "loss: chunked", "loss", "one of 8 parts"),
    (FSDP2, "loss: fused_linear", "loss", "LigerFusedLinearCrossEntropyLoss"),
    (TRAINER, "loss: fused_linear", "loss", "--use_liger_kernel true"),
    (DEEPSPEED, "compile: true", "compile", "engine.compile()"),
    (FSDP2, "compile: true", "compile", "block.compile()"),
    (TRAINER, "compile: true", "compile", "--torch_compile true"),
]


@pytest.mark.parametrize(("target", "training", "key", "said"), CASES)
def test_the_file_alone_names_what_to_write_and_a_script_is_refused(
    target: str, training: str, key: str, said: str
) -> None:
    (named,) = [note for note in build(target, training).not_carried if note.key == key]
    assert said in named.pass_as
    with pytest.raises(RefusedError, match=rf"does not do this yet: .*{key}"):
        build(target, training, folder=True)


def test_residents_are_named_and_need_no_script() -> None:
    rest = "residents: [{model: same}, {name: vllm, reserve: 30%}, {name: x, reserve: 2GiB}]"
    notes = [note for note in build(rest, "", folder=True).not_carried if note.key == "residents"]
    assert [note.value for note in notes] == ["reference model", "vllm", "x"]
    assert "30% of each card" in notes[1].pass_as
    assert "2.00 GiB of each card" in notes[2].pass_as


def test_a_plain_spec_is_told_nothing_of_these() -> None:
    assert not {note.key for note in build("", "").not_carried} & {"quantization", "freeze", "loss", "compile"}
