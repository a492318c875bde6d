"""The generated scripts start from published weights: with the same logits as transformers, or not at all."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from console import environment
from decoder_jobs import FULL, LORA, Job, every_kind, run
from test_generated_folder import LIMIT, steps, train, unpack
from written_plans import hardware, plan, spec, written

from dsgen.facts.models import find_model
from dsgen.formats import writer
from dsgen.formats.decoder import decoder_source
from dsgen.formats.hf_config import NO_SPECIAL_TOKENS, hf_config, model_type
from dsgen.formats.published import pretrained, reads_weights
from dsgen.formats.values import Written
from dsgen.shapes.from_row import from_row
from dsgen.shapes.resolve import shapes_of
from dsgen.shapes.tiny import tiny
from dsgen.shapes.values import Architecture
from dsgen.spec.values import Method, Training
from dsgen.target import Loader, Target

# What a class's default is not.
THETA = {"rope_theta": 500000.0}
NUMBERS = {"rope_parameters": {"rope_type": "default", **THETA}, "rms_norm_eps": 3e-6}
# The ramp from kept to stretched lies within the tiny head's eight frequencies.
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}


def architecture(name: str) -> Architecture:
    model = find_model(name)
    assert model is not None
    return from_row(model).architecture


def written_fsdp2(model: str = "llama-3.1-8b", loaded_by: Loader = "deepspeed") -> Written:
    layout = plan(zero_stage=3, precision="fp32", accumulation=1)
    target = Target(format="fsdp2", loaded_by=loaded_by)
    made = writer("fsdp2").write(layout, shapes_of(spec(model)), Training(), target, hardware(), 4096, folder=True)
    assert isinstance(made, Written)
    return made


def job(name: str, a: Architecture, method: Method = FULL, config: dict[str, Any] | None = None, **more: Any) -> Job:
    return {
        "name": name,
        "files": {"model.py": decoder_source(a, method), **pretrained(a, None)},
        "model_type": model_type(a),
        "config": hf_config(tiny(a)) | NO_SPECIAL_TOKENS | NUMBERS | (config or {}),
        **more,
    }


def alike() -> list[Job]:
    """Every kind of decoder whose names are the published ones, and the ways in which a folder may say the same."""
    kinds = {s.name: s.architecture for s in every_kind() if reads_weights(s.architecture)}
    llama, tied = architecture("llama-3.1-8b"), architecture("llama-3.2-1b")
    scaled = {"rope_parameters": {"rope_type": "llama3", **THETA, **LLAMA3}}
    older = {"rope_parameters": "absent", **THETA}
    return [
        *(job(name, a) for name, a in kinds.items()),
        job("adapters", llama, LORA),
        job("shards", llama, max_shard_size="100KB"),
        job("llama3 scaling", llama, config=scaled),
        job(
            "llama3 scaling, older spelling",
            llama,
            config=scaled,
            edit_config=older | {"rope_scaling": {"type": "llama3", **LLAMA3}},
        ),
        job("older spelling", llama, edit_config=older | {"rope_scaling": None, "head_dim": "absent"}),
        job(
            "rotary tables of old versions",
            llama,
            edit_tensors={"model.layers.0.self_attn.rotary_emb.inv_freq": [8]},
        ),
        job("a tied head saved twice", tied, edit_tensors={"lm_head.weight": "model.embed_tokens.weight"}),
    ]


NORM = "model.layers.1.input_layernorm.weight"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "missing": ("llama-3.1-8b", {"edit_tensors": {NORM: None}}, f"FOLDER: {NORM} is missing"),
    "extra": (
        "llama-3.1-8b",
        {"edit_tensors": {"model.layers.1.self_attn.q_proj.bias": [64]}},
        "FOLDER: model.layers.1.self_attn.q_proj.bias has no place in the decoder",
    ),
    "shape": ("llama-3.1-8b", {"edit_tensors": {NORM: [32]}}, f"FOLDER: {NORM} is (32,), the decoder has (64,)"),
    "many": (
        "llama-3.1-8b",
        {"edit_tensors": {f"bias.{number}": [1] for number in range(9)}},
        "FOLDER: " + "; ".join(f"bias.{number} has no place in the decoder" for number in range(6)) + " and 3 more",
    ),
    "head": (
        "llama-3.2-1b",
        {"edit_tensors": {"lm_head.weight": [256, 64]}},
        "FOLDER: lm_head.weight is not the embedding, as the plan has it",
    ),
    "size": (
        "llama-3.1-8b",
        {"edit_config": {"intermediate_size": 11008}},
        "FOLDER/config.json: intermediate_size is 11008, the plan has 128",
    ),
    "scaling": (
        "llama-3.1-8b",
        {"edit_config": {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, **THETA}}},
        "FOLDER/config.json: RoPE is scaled by 'yarn', the decoder knows llama3 only",
    ),
    "half a scaling": (
        "llama-3.1-8b",
        {"edit_config": {"rope_parameters": {"rope_type": "llama3", "factor": 4.0, **THETA}}},
        "FOLDER/config.json: the scaling of RoPE lacks low_freq_factor, high_freq_factor, "
        "original_max_position_embeddings",
    ),
    "no window": (
        "mistral-7b-v0.3",
        {"edit_config": {"sliding_window": 4096}},
        "FOLDER/config.json: sliding_window is 4096, the decoder has no window",
    ),
    "window": (
        "mistral-7b-v0.1",
        {"edit_config": {"sliding_window": None}},
        "FOLDER/config.json: sliding_window is None, the plan has 32",
    ),
    "activation": (
        "llama-3.1-8b",
        {"edit_config": {"hidden_act": "gelu"}},
        "FOLDER/config.json: hidden_act is gelu, the decoder has silu",
    ),
    "file": ("llama-3.1-8b", {"remove": ["model.safetensors"]}, "FOLDER: there is no model.safetensors"),
}


TOKENS = np.random.default_rng(0).integers(0, 256, 32, dtype=np.uint16)


@pytest.fixture(scope="module")
def folder_of_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.fixture(scope="module")
def answers(folder_of_weights: Path) -> dict[str, dict[str, Any]]:
    """One process for all, since importing transformers takes seconds."""
    kept = job("kept", architecture("llama-3.1-8b"), keep=str(folder_of_weights), tokens=[TOKENS.tolist()])
    refused = [job(f"refused: {name}", architecture(model), **how) for name, (model, how, _) in REFUSED.items()]
    return run("load_pretrained.py", [*alike(), *refused, kept])


def test_logits_are_those_of_transformers(answers: dict[str, dict[str, Any]]) -> None:
    """fp32: rounding alone is below 1e-6 of the largest logit; the class's default base would be above 1e-3."""
    found = {name: answer for name, answer in answers.items() if not name.startswith("refused: ")}
    assert len(found) >= 20
    assert {name: answer for name, answer in found.items() if not answer.get("difference", 1) < 1e-5} == {}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_decoder_cannot_take_is_refused(name: str, answers: dict[str, dict[str, Any]]) -> None:
    assert answers[f"refused: {name}"] == {"error": f"--weights: {REFUSED[name][2]}"}


@pytest.fixture(scope="module")
def checkpoint(folder_of_weights: Path, answers: dict[str, dict[str, Any]]) -> tuple[list[str], float]:
    """Arguments that start from a folder of weights, on one sequence over and over; its loss by transformers."""
    data = folder_of_weights / "tokens.bin"
    np.tile(TOKENS, 64).tofile(data)
    arguments = ["--steps", "1", "--weights", str(folder_of_weights), "--data", str(data)]
    return arguments, answers["kept"]["loss"]


def first_loss(output: str) -> float:
    return float(steps(output)[1].split()[1])


STARTS: dict[str, dict[str, Any]] = {
    "stage 3": {"zero_stage": 3},
    "stage 3, offload": {"zero_stage": 3, "offload_optimizer": "cpu", "offload_parameters": "cpu"},
    "stage 1, adapters": {"zero_stage": 1, "training": Training(method=Method(type="lora"))},
}


@pytest.mark.parametrize(
    "name", [name if name == "stage 3" else pytest.param(name, marks=pytest.mark.full) for name in STARTS]
)
def test_deepspeed_starts_where_they_are(name: str, checkpoint: tuple[list[str], float], tmp_path: Path) -> None:
    """The loss of the first step is logged with four digits, before anything has moved."""
    arguments, loss = checkpoint
    made = written(model="llama-3.1-8b", precision="fp32", folder=True, **STARTS[name])
    folder = unpack(made, tmp_path)
    assert abs(first_loss(train(folder, "torchrun.sh", *arguments)) - loss) < 1e-4


@pytest.mark.full  # every day: fsdp2/test_fsdp2_trains.py, without the launcher
def test_fsdp2_starts_where_they_are(checkpoint: tuple[list[str], float], tmp_path: Path) -> None:
    arguments, loss = checkpoint
    folder = unpack(written_fsdp2(), tmp_path)
    assert abs(first_loss(train(folder, "torchrun.sh", *arguments)) - loss) < 1e-4


@pytest.mark.full
def test_a_resumed_training_needs_the_same_numbers(checkpoint: tuple[list[str], float], tmp_path: Path) -> None:
    """Without --weights the RoPE base would be another, and no shape would show it."""
    arguments, _ = checkpoint
    for name, made in (
        ("deepspeed", written(model="llama-3.1-8b", zero_stage=3, folder=True)),
        ("fsdp2", written_fsdp2()),
    ):
        folder = unpack(made, tmp_path / name)
        train(folder, "torchrun.sh", *arguments)
        assert 2 in steps(train(folder, "torchrun.sh", *arguments, "--resume", "--steps", "2"))
        ran = subprocess.run(
            [folder / "launch" / "torchrun.sh", "--size", "tiny", "--resume", "--steps", "3"],
            env=environment(DS_ACCELERATOR="cpu", NPROC="2"),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert ran.returncode != 0
        assert "another Config; resume it with the same --weights" in ran.stderr


def test_other_names_are_left_to_transformers() -> None:
    for made in (written(model="mixtral-8x7b", folder=True), written_fsdp2(model="mixtral-8x7b")):
        assert "pretrained.py" not in made.files
        assert "--weights" not in made.files["train.py"]
        assert "target.loaded_by: transformers" in made.files["train.py"]
        (note,) = [item for item in made.not_carried if item.key == "rope_theta"]
        assert note.pass_as == "target.loaded_by: transformers"


def test_the_note_names_the_way_to_the_published_base() -> None:
    def told(made: Any) -> list[str]:
        return [item.pass_as for item in made.not_carried if item.key == "rope_theta"]

    assert told(written(folder=True)) == told(written_fsdp2()) == ["train.py --weights FOLDER"]
    assert told(written(folder=True, loaded_by="transformers")) == ["train.py --model FOLDER"]
    assert told(written_fsdp2(loaded_by="transformers")) == ["train.py --model FOLDER"]
    assert told(written()) == told(written(folder=True, model="gpt2-xl")) == []
