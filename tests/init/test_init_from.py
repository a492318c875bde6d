"""dsgen init --from: realistic sets of files and the spec of what they do; and files that mean harm."""

import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from console import dsgen

from dsgen.cli import main
from dsgen.facts.versions import libraries
from dsgen.spec.read import read_spec

SETS = Path(__file__).parent / "sets"
NAMES = sorted(path.name for path in SETS.iterdir())
EXPECTED = ("expected.yaml", "expected.txt")
SHARED = os.environ.get("DSGEN_SHARED")
TRAIN = {"model_name_or_path": "llama-2-7b", "per_device_train_batch_size": 2, "bf16": True}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def spec_of(*files: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """The spec as YAML values, and what was said."""
    code = main(["init", "--from", *files, "-o", "made.yaml", "--force"])
    said = capsys.readouterr().err
    assert code == 0, said
    return yaml.safe_load(Path("made.yaml").read_text(encoding="utf-8")) or {}, said


def put(name: str, content: Any) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(text, encoding="utf-8")
    return name


def _unversioned(text: str) -> str:
    return text.replace(f"DeepSpeed {libraries()['deepspeed'].newest}", "DeepSpeed NEWEST")


@pytest.mark.parametrize("name", NAMES)
def test_a_set_of_files_becomes_its_spec(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(path.name for path in (SETS / name).iterdir() if path.name not in EXPECTED)
    for file in files:
        shutil.copy(SETS / name / file, file)
    assert main(["init", "--from", *files]) == 0
    seen = capsys.readouterr()
    assert seen.out == "wrote spec.yaml\n"
    spec, text = (SETS / name / expected for expected in EXPECTED)
    assert _unversioned(Path("spec.yaml").read_text(encoding="utf-8")) == spec.read_text(encoding="utf-8")
    assert _unversioned(seen.err) == text.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_is_planned_once_the_machine_is_filled_in(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Uncommenting what is marked as needed is all that it takes."""
    text = (SETS / name / EXPECTED[0]).read_text(encoding="utf-8")
    for line in ("gpu: h100-80gb-sxm", "gpus_per_node: 8", "model: llama-3.1-8b", "hardware:"):
        text = text.replace(f"# {line}", line)
    if "model: Qwen/Qwen2.5-7B-Instruct" in text:  # no preset: a person gives its sizes
        text = text.replace("model: Qwen/Qwen2.5-7B-Instruct", "model: {parameters: 7B}      ")
    if "total_steps: 10000" in text:
        text = text.replace("# total_steps: 10000", "total_steps: 10000")
    code = main(["plan", put("filled.yaml", text), "--format", "json"])
    seen = capsys.readouterr()
    assert code in (0, 1), seen.err
    plan = json.loads(seen.out)["plan"]
    want = read_spec("filled.yaml").want
    for key in ("zero_stage", "micro_batch", "accumulation", "offload_optimizer", "offload_parameters"):
        assert plan[key] == want.get(key, plan[key])
    for key, value in (want.get("buckets") or {}).items():  # type: ignore[attr-defined]
        assert plan["buckets"][key] == value


@pytest.mark.parametrize(
    "text",
    ['{"zero_optimization": {"stage": 2}}', "zero_optimization:\n  stage: 2\n", "{zero_optimization: {stage: 2\n}}"],
)
def test_a_pipe_is_a_file_too(text: str, tmp_path: Path) -> None:
    made = dsgen("init", "--from", "-", "-o", "-", cwd=tmp_path, stdin=text)
    assert made.returncode == 0, made.stderr
    assert yaml.safe_load(made.stdout)["want"]["zero_stage"] == 2


def test_a_file_that_is_read_is_not_replaced_even_where_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    name = put("ds.json", {"zero_optimization": {"stage": 2}})
    before = Path(name).read_bytes()
    Path("link.yaml").symlink_to(name)
    for output in (name, "link.yaml"):
        assert main(["init", "--force", "--from", name, "-o", output]) == 2
        assert f"{output}: is read for the spec" in capsys.readouterr().err
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize(
    "outer", ["mpirun -np 8", "env A=1 torchrun --nproc_per_node 8", "nohup torchrun --nproc_per_node 8"]
)
def test_what_stands_before_a_launcher_in_its_line(outer: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec, said = spec_of(f"{outer} train.py", capsys=capsys)
    assert "cannot be read" not in said
    assert spec["hardware"]["gpus_per_node"] == 8


def test_the_config_counts_over_arguments_and_the_disagreement_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}
    spec, said = spec_of(put("ds.json", config), put("train.json", TRAIN), capsys=capsys)
    assert spec["want"]["micro_batch"] == 4
    assert "want.micro_batch: ds.json:1: train_micro_batch_size_per_gpu says 4, train.json:1" in said


def test_arguments_fill_what_the_config_leaves_open(capsys: pytest.CaptureFixture[str]) -> None:
    config = {
        "train_micro_batch_size_per_gpu": "auto",
        "bf16": {"enabled": "auto"},
        "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        "zero_optimization": {"stage": 2},
    }
    arguments = TRAIN | {"learning_rate": 3e-4, "gradient_accumulation_steps": 2}
    spec, _ = spec_of(put("ds.json", config), put("train.json", arguments), capsys=capsys)
    assert spec["want"]["micro_batch"] == 2
    assert spec["training"]["precision"] == "bf16"
    assert spec["training"]["optimizer"]["lr"] == 3e-4
    assert spec["target"]["loaded_by"] == "transformers"


def test_batch_sizes_give_the_number_of_processes(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"train_batch_size": 128, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}
    spec, _ = spec_of(put("ds.json", sizes), capsys=capsys)
    assert spec["hardware"] == {"gpus_per_node": 8, "nodes": 2}


def test_batch_sizes_that_the_launch_does_not_give_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"train_batch_size": 128, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}
    _, said = spec_of(put("ds.json", sizes), "torchrun --nproc_per_node 4 train.py", capsys=capsys)
    assert "128 is not 2 x 4 x 4 processes" in said


def test_what_a_spec_can_not_say_yet_is_a_comment_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = TRAIN | {"model_name_or_path": "x\n\u0000y", "max_grad_norm": 1e308}
    spec, said = spec_of(put("train.json", arguments), capsys=capsys)
    assert "model" not in spec
    assert "A spec can't say this yet" in said
    assert "\u0000" not in Path("made.yaml").read_text(encoding="utf-8")


def test_python_is_looked_at_and_never_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "open('ran', 'w')\n"
        "from transformers import TrainingArguments\n"
        "args = TrainingArguments('out', learning_rate=open('ran', 'w') and 1e-5, per_device_train_batch_size=3)\n"
    )
    spec, said = spec_of(put("train.py", text), capsys=capsys)
    assert not Path("ran").exists()
    assert spec["want"]["micro_batch"] == 3
    assert "learning_rate: line 3 computes it" in said
    # transformers/training_args.py: what the call leaves out
    assert spec["want"]["accumulation"] == 1
    assert spec["want"]["checkpointing"] == "none"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ds.json", "{"),
        ("ds.json", "[1, 2]"),
        ("ds.json", '{"name": "package"}'),
        ("train.yaml", "a: [1\n"),
        ("train.yaml", "- x\n"),
        ("train.yaml", "a: &a [*a]\n"),
        ("train.py", "def f(:\n"),
        ("train.py", "print('no arguments here')\n"),
        ("train.py", "(" * 5000),
        ("train.py", "\x00"),
        ("run.sh", "echo nothing to launch\n"),
        ("run.sh", "'"),
        ("ds.json", '{"zero_optimization": ' + '{"a":' * 3000),
    ],
)
def test_what_nothing_can_be_made_of_is_refused_by_name(
    name: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--from", put(name, content)]) == 2
    assert name in capsys.readouterr().err
    assert not Path("spec.yaml").exists()


def test_files_that_are_not_there_or_no_text_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("binary.json").write_bytes(b"\xff\xfe\x00\x80")
    Path("huge.yaml").write_bytes(b"a: 1\n" * 400_000)
    for name in ("none.json", "binary.json", "huge.yaml", "."):
        assert main(["init", "--from", name]) == 2
        assert name in capsys.readouterr().err


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "x" * 5000,
    "a: b # c",
    "{{x}}",
    "\u202e",
    "\n- 1",
    [],
    {},
    [[]],
]


@pytest.mark.parametrize("value", HOSTILE, ids=[repr(value)[:20] for value in HOSTILE])
def test_any_value_anywhere_yields_a_spec_that_reads(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [
        *("model_name_or_path", "per_device_train_batch_size", "gradient_accumulation_steps", "learning_rate", "bf16"),
        *("gradient_checkpointing", "gradient_checkpointing_kwargs", "optim", "lr_scheduler_type", "warmup_ratio"),
        *("warmup_steps", "max_steps", "attn_implementation", "lora_rank", "target_modules", "finetuning_type", "fsdp"),
        *("max_grad_norm", "max_seq_length", "deepspeed", "adam_beta1", "mixed_precision"),
    ]
    for start in range(4):
        given = {"do_train": True, "bf16": True, "learning_rate": 1e-5} | dict.fromkeys(keys[start::4], value)
        spec_of(put("train.json", given), capsys=capsys)
        text = Path("made.yaml").read_text(encoding="utf-8")
        training = text[text.find("training:") :] if "\ntraining:" in text else ""
        read_spec(put("filled.yaml", f"model: llama-2-7b\nhardware: {{gpu: h100}}\n{training}"))


def _corpus() -> list[Path]:
    kinds = ("deepspeed_json", "accelerate_yaml", "trainer_yaml", "deepspeed_yaml")
    return [file for kind in kinds for file in sorted((Path(SHARED or "") / "corpus" / kind).iterdir())]


def _become_specs(files: list[Path], capsys: pytest.CaptureFixture[str]) -> int:
    made = 0
    for file in files:
        code = main(["init", "--from", str(file), "-o", "made.yaml", "--force"])
        seen = capsys.readouterr()
        assert code in (0, 2), (file.name, seen.err)
        if code == 0:
            made += 1
            text = Path("made.yaml").read_text(encoding="utf-8")
            assert isinstance(yaml.safe_load(text), dict | None), file.name
    return made


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED names no folder with configs that people wrote")
def test_what_people_wrote_becomes_a_spec_or_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Every twelfth DeepSpeed, accelerate and trainer file, others with each day; what is read is valid."""
    sample = _corpus()[date.today().toordinal() % 12 :: 12]
    assert _become_specs(sample, capsys) > len(sample) * 0.8


@pytest.mark.full
@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED names no folder with configs that people wrote")
def test_everything_that_people_wrote_becomes_a_spec_or_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert _become_specs(_corpus(), capsys) > 400
