"""What can be named on the command line, and what is said of the rest."""

import json
import os
from pathlib import Path

import pytest
from smoke_helpers import ROOT, config, dsgen

from dsgen.cli import main
from dsgen.errors import InputError
from dsgen.smoke.adapt.folder import copy_of
from dsgen.smoke.decoders import default_decoder
from dsgen.smoke.inputs import read_case

MALFORMED = {
    "missing colon": ('{\n  "a" 1\n}\n', ":2:3: "),
    "duplicate": ('{\n  "a": 1,\n  "a": 2\n}\n', ":3:3: a stands here again, first in line 2"),
    "duplicate inside": ('{"zero_optimization": {"stage": 1,\n "stage": 2}}', ":2:2: zero_optimization.stage stands"),
    "a list": ("[1]", ":1:1: a DeepSpeed config is an object"),
    "cut off": ('{"a": {"b": 1', ":1:14: "),
}


@pytest.mark.parametrize(("text", "said"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert main(["smoke", str(path)]) == 2
    assert f"{path}{said}" in capsys.readouterr().err


def test_every_malformed_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{,}")
    assert main(["smoke", str(tmp_path / "a.json"), str(tmp_path / "b.json"), str(tmp_path / "none.json")]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in ("a.json:1:2", "b.json:1:2", "none.json: can't be read"))


def test_not_text(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="not UTF-8"):
        read_case(str(tmp_path / "x.json"))


def test_hjson_is_read_as_deepspeed_reads_it(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{\n  # comment\n  train_batch_size: 8,\n}\n")
    case = read_case(str(tmp_path / "x.json"))
    assert case.config == {"train_batch_size": 8}
    assert "HJSON" in case.notes[0]


def test_numbers_are_those_that_deepspeed_sees(tmp_path: Path) -> None:
    """hjson makes 5e8 an int; json would make it a float, which the file written for the workers would keep."""
    (tmp_path / "x.json").write_text('{"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}')
    value = read_case(str(tmp_path / "x.json")).config["zero_optimization"]["reduce_bucket_size"]
    assert (value, type(value)) == (500_000_000, int)


def test_auto_means_the_trainer(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"train_batch_size": "auto"}))
    assert read_case(str(tmp_path / "x.json")).filling is not None
    (tmp_path / "x.json").write_text(json.dumps(config(1)))
    assert read_case(str(tmp_path / "x.json")).filling is None


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text(json.dumps(config(1)))
    assert read_case(str(tmp_path)).name == str(tmp_path / "ds_config.json")
    (tmp_path / "model.py").write_text("class MyModel: ...\n")
    assert "MyModel" not in read_case(str(tmp_path)).decoder
    assert "no Decoder" in read_case(str(tmp_path)).notes[-1]
    source = default_decoder().replace("normal distribution", "NORMAL distribution")
    (tmp_path / "model.py").write_text(source)
    assert read_case(str(tmp_path)).decoder == source
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no ds_config\.json"):
        read_case(str(tmp_path / "empty"))


def test_a_spec_brings_its_family_and_its_precision() -> None:
    case = read_case(str(ROOT / "examples/mistral-7b-trainer-8xl40s/spec.yaml"))
    assert case.family == "mistral"
    assert case.filling is not None
    assert (case.filling.bf16, case.filling.fp16) == (True, False)
    own = read_case(str(ROOT / "examples/llama-2-7b-8xa100/spec.yaml"))
    assert own.filling is None
    assert "class Decoder(" in own.decoder


def test_a_spec_that_splits_matrices_runs_whole_and_says_so(tmp_path: Path) -> None:
    """AutoTP finds no policy for a decoder of ours: it is transformers' classes that it splits."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "model: mistral-7b-v0.3\nhardware: {gpu: l40s, gpus_per_node: 8}\ntraining: {global_batch: 64}\n"
        "want: {tensor_parallel: 2}\ntarget: {loaded_by: transformers}\n"
    )
    case = read_case(str(spec))
    assert "tensor_parallel" not in case.config
    assert any("tensor parallelism is left out" in note for note in case.notes)


def test_a_spec_that_does_not_fit_is_a_refused_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text(
        "model: llama-3.1-70b\nhardware: {gpu: rtx-4090, gpus_per_node: 1}\nwant: {zero_stage: 0}\n"
    )
    assert main(["smoke", str(tmp_path / "spec.yaml"), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["runs"][0]["outcome"] == "refused"
    assert report["runs"][0]["error"]["reason"]


BAD_FLAGS = {
    ("--steps", "0"): "'0' is no whole number from 1 to 1000000",
    ("--steps", "1.5"): "'1.5' is no whole number",
    ("--steps", "9" * 5000): "is no whole number from 1",
    ("--processes", "x"): "'x' is no whole number from 1 to 1024",
    ("--processes", "100000"): "'100000' is no whole number from 1 to 1024",
    ("--processes", "-2"): "argument --processes",
    ("--timeout", "nan"): "'nan' is no number of seconds above 0",
    ("--timeout", "soon"): "'soon' is no number of seconds above 0",
    ("--timeout", "0"): "'0' is no number of seconds above 0",
    ("--timeout", "1e400"): "'1e400' is no number of seconds above 0",
}


@pytest.mark.parametrize(("flag", "said"), BAD_FLAGS.items(), ids=lambda value: str(value)[:30])
def test_bad_flags(flag: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["smoke", "x.json", *flag])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_device_without_end_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "x.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="bytes are too many for such a file"):
        read_case(str(tmp_path / "x.json"))


def test_the_copy_of_a_folder_holds_its_code_alone(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "package").mkdir(parents=True)
    for name in ("ds_config.json", "train.py", "package/layers.py"):
        (folder / name).write_text("{}")
    (folder / "model.py").symlink_to(folder / "train.py")
    (folder / "zero.py").symlink_to("/dev/zero")
    (folder / "nothing.py").symlink_to(folder / "gone.py")
    (folder / "package" / "back").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    with (folder / "weights.bin").open("wb") as weights:
        weights.truncate(10_000_000)
    copy = copy_of(folder, tmp_path / "copy")
    copied = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert copied == {"ds_config.json", "train.py", "model.py"}


@pytest.mark.parametrize("library", ["torch", "deepspeed"])
def test_a_missing_library(tmp_path: Path, library: str) -> None:
    package = tmp_path / "without" / library
    package.mkdir(parents=True)
    message = f"No module named {library!r}"
    (package / "__init__.py").write_text(f"raise ModuleNotFoundError({message!r}, name={library!r})")
    if library == "deepspeed":  # a torch that costs nothing to import
        (package.parent / "torch.py").write_text("")
    (tmp_path / "x.json").write_text(json.dumps(config(1)))
    ran = dsgen("x.json", cwd=tmp_path, env={"PYTHONPATH": str(package.parent)})
    assert ran.code == 2
    assert ran.err.startswith(f"dsgen: {library} is not installed")
    assert "pip install 'dsgen[smoke]'" in ran.err
    assert list(tmp_path.glob("dsgen-smoke-*")) == []


def test_a_broken_library(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open shared object file')")
    (tmp_path / "x.json").write_text(json.dumps(config(1)))
    ran = dsgen("x.json", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "broken")})
    assert ran.code == 2
    assert "import torch fails: OSError: libcudart.so.12" in ran.err
