"""The target by flags, settings and specs: names are looked up, and the nearest one is told for what nobody knows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dsgen.cli import main
from dsgen.lint import stated
from dsgen.lint.project import forget, target_of_file
from dsgen.lint.settings import Settings, settings_of
from dsgen.lint.target import LintTarget, make_target


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    Path("ds.json").write_text('{"train_batch_size": 8}', "utf-8")
    return tmp_path


def target(flags: Mapping[str, Any] | None = None, settings: Settings | None = None) -> LintTarget:
    forget()
    return target_of_file("ds.json", flags or {}, settings or settings_of(Path.cwd()))


WRONG = {
    "--gpu a100-80gb-sx": "did you mean a100-80gb-sxm",
    "--gpu 24": "dsgen show gpus lists them all",
    "--gpu 0GiB": "or give its memory: 24GiB",
    "--model lama-2-7b": "llama-2-7b",
    "--host-memory lots": "write 512GiB",
    "--host-memory 0GB": "write 512GiB",
    "--checkpointing every:0": "none, full, selective or every:2",
    "--method adapters": "full, lora or qlora",
    "--sequence-length 0": "not a positive whole number",
    "--micro-batch -1": "not a positive whole number",
}


@pytest.mark.parametrize("flags", WRONG)
def test_what_nobody_knows_is_refused_with_the_nearest_name(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["lint", "ds.json", *flags.split()])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert WRONG[flags] in said
    assert flags.split()[0] in said


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('gpu = "h100-80"', "h100-80gb"),
        ('model = "llama-2-7"', "llama-2-7b"),
        ('host-memory = "much"', "512GiB"),
        ("sequence-length = 0", "1 or more"),
        ("gpu = 3", "text in quotes"),
        ('spec = "nowhere.yaml"', "nowhere.yaml"),
    ],
)
def test_settings_are_refused_at_their_line(key: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text(f'[tool.dsgen]\ndeepspeed = "0.19.8"\n{key}\n', "utf-8")
    assert main(["lint", "ds.json"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "nowhere" in error or "pyproject.toml:3" in error


def test_settings_say_all_that_flags_say() -> None:
    Path("pyproject.toml").write_text(
        '[tool.dsgen]\nworld-size = 16\ngpus-per-node = 8\ngpu = "A100-80GB-SXM"\nhost-memory = "1TiB"\n'
        'model = "meta-llama/Llama-2-7b-hf"\nsequence-length = 2048\nmicro-batch = 2\ncheckpointing = "every:2"\n'
        'method = "lora"\n',
        "utf-8",
    )
    found = target()
    assert (found.world_size, found.gpus_per_node, found.sequence_length, found.micro_batch) == (16, 8, 2048, 2)
    assert found.gpu is not None
    assert found.gpu.name == "a100-80gb-sxm"
    assert found.host_memory == 2**40
    assert found.model is not None
    assert (found.model.parameters, found.model.trained_in) == (6_738_415_616, "bf16")
    assert str(found.checkpointing) == "every 2"
    assert found.method is not None
    # Rank 16 on every linear layer of a block: 32 layers x 16 x (4 x (4096 + 4096) + 3 x (4096 + 11008)).
    assert found.model.trained(found.method) == 32 * 16 * (4 * 8192 + 3 * 15104)
    assert target({"world_size": 4}).world_size == 4, "a flag decides"


SPEC = """\
model: llama-2-7b
hardware: {gpu: a100-80gb-sxm, gpus_per_node: 8, nodes: 2, host_memory: 1TiB}
training: {sequence_length: 4096, method: {type: lora}}
want: {micro_batch: 4, checkpointing: {every: 2}}
target: {loaded_by: transformers, versions: {deepspeed: 0.17.2}}
"""


def test_a_spec_says_all_at_once() -> None:
    Path("spec.yaml").write_text(SPEC, "utf-8")
    found = target({"spec": "spec.yaml", "gpus_per_node": 4})
    assert (found.world_size, found.gpus_per_node) == (16, 4), "and a flag beside it decides"
    assert (found.deepspeed, found.loaded_by, found.sequence_length) == ((0, 17, 2), "transformers", 4096)
    assert (found.micro_batch, str(found.checkpointing), found.host_memory) == (4, "every 2", 2**40)
    assert found.method is not None
    assert found.method.type == "lora"
    assert found.model is not None
    assert found.model.parameters == 6_738_415_616, "the model itself, whatever of it is trained"
    Path("pyproject.toml").write_text('[tool.dsgen]\nspec = "spec.yaml"\nworld-size = 32\n', "utf-8")
    settled = target()
    assert (settled.world_size, settled.loaded_by) == (32, "transformers")


def test_what_a_spec_leaves_open_stays_open() -> None:
    Path("spec.yaml").write_text("model: {parameters: 110M}\nhardware: {gpu: {memory: 16GB}}\n", "utf-8")
    found = target({"spec": "spec.yaml"})
    assert (found.world_size, found.gpus_per_node, found.host_memory, found.loaded_by) == (None, None, None, None)
    assert found.model is not None
    assert (found.model.parameters, found.model.shapes, found.model.trained_in) == (110_000_000, None, None)


def test_models_and_gpus_by_their_size() -> None:
    assert stated.model("110M").parameters == 110_000_000
    assert stated.model("bert-base-uncased").shapes is None, "no decoder: its size is known, its tensors are not"
    card = stated.gpu("24GiB")
    assert (card.memory, card.compute_capability) == (24 * 2**30, None)


@pytest.mark.parametrize("name", ["gemma-3-4b", "70B"])
@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_adapters_of_unknown_matrices_are_not_counted_as_all_weights(
    name: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 2 + 2 + 12 bytes a parameter the states of either are far beyond this card; those of adapters are not known,
    and the weights alone fit."""
    text = '{"train_batch_size": 8, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW"}}'
    Path("ds.json").write_text(text, "utf-8")
    flags = ["--model", name, "--gpu", "b200-180gb-sxm", "--world-size", "8", "--select", "DS707"]
    assert main(["lint", "ds.json", *flags, "--method", method]) == 0, capsys.readouterr().out
    if name == "70B":
        assert main(["lint", "ds.json", *flags, "--method", "full"]) == 1
    model = stated.model(name)
    assert model.trained(stated.method(method)) == 0
    assert model.trained(stated.method("full")) == model.parameters


def test_a_model_by_its_folder(tmp_path: Path) -> None:
    Path("pyproject.toml").write_text('[tool.dsgen]\nmodel = "mine"\n', "utf-8")
    Path("mine").mkdir()
    config = (
        '{"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,'
        ' "num_attention_heads": 4, "intermediate_size": 128, "torch_dtype": "bfloat16"}'
    )
    Path("mine/config.json").write_text(config, "utf-8")
    found = target().model
    assert found is not None
    # 2 V h + L (4 h h + 3 h i + 2 h) + h
    assert found.parameters == 2 * 100 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64
    Path("mine/config.json").write_text("{", "utf-8")
    forget()
    assert main(["lint", "ds.json"]) == 2


@pytest.mark.parametrize(
    ("version", "note"),
    [("0.12.6", " (by its source, not executed)"), ("0.19.8", ""), ("0.99.0", " (newer than what is known here")],
)
def test_a_version_that_nobody_could_try_is_marked(version: str, note: str) -> None:
    assert make_target(version).library.startswith(f"DeepSpeed {version}{note}")
