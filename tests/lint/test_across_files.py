"""Mistakes that only two files together show: each is found where it can be mended, and points into the other file."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsgen.cli import main

Found = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    return tmp_path


def lint(files: dict[str, str], capsys: pytest.CaptureFixture[str], *flags: str) -> Found:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8")
    main(["lint", ".", "--deepspeed", "0.19.8", "--format", "json", *flags])
    found: Found = json.loads(capsys.readouterr().out)["findings"]
    return found


ENGINE = """\
import deepspeed
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="conf/ds.json")
for batch in loader:
    engine.backward(engine(batch))
    engine.step()
"""
WITH_OPTIMIZER = ENGINE.replace(
    "model_parameters=model.parameters()", "optimizer=torch.optim.AdamW(model.parameters())"
)
TRAINER = """\
from transformers import Trainer, TrainingArguments
args = TrainingArguments("out", bf16=True, deepspeed="conf/ds.json")
trainer = Trainer(model=model, args=args)
trainer.save_model("out")
"""
SIZES = '"train_micro_batch_size_per_gpu": 8'
ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}'

# name -> (config, code, code of the finding, line of the code, line and column in the config, a word of what is said)
CASES: dict[str, tuple[str, str, str, int, tuple[int, int], str]] = {
    "optimizer in both": (
        f"{{{SIZES},\n {ADAM}}}",
        "import torch\n" + WITH_OPTIMIZER,
        *("XF501", 3, (2, 16), "AdamW"),
    ),
    "optimizer in neither": (
        f'{{{SIZES},\n "zero_optimization": {{"stage": 2}}}}',
        ENGINE,
        "XF502",
        2,
        (2, 24),
        "asserts",
    ),
    "zero.Init at stage 1": (
        f'{{{SIZES}, {ADAM},\n "zero_optimization": {{"stage": 1}}}}',
        ENGINE.replace("engine,", "with deepspeed.zero.Init():\n    model = Net()\nengine,", 1),
        *("XF301", 2, (2, 24), "stage 1"),
    ),
    "weights of shards": (
        '{"train_micro_batch_size_per_gpu": "auto",\n "zero_optimization": {"stage": 3}}',
        TRAINER,
        *("XF303", 4, (2, 2), "stage3_gather_16bit_weights_on_model_save"),
    ),
    "another micro batch": (
        f"{{{SIZES}, {ADAM}}}",
        "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=4)\n" + ENGINE,
        *("XF202", 2, (1, 2), "batches of 4"),
    ),
    "clipped by the config": (
        '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2},\n "gradient_clipping": 1.0}',
        'from accelerate import Accelerator, DeepSpeedPlugin\nplugin = DeepSpeedPlugin(hf_ds_config="conf/ds.json")\n'
        "accelerator = Accelerator(deepspeed_plugin=plugin)\naccelerator.clip_grad_norm_(model.parameters(), 0.5)\n",
        *("XF503", 4, (2, 2), "not at 0.5"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_code_points_into_the_config(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    config, code, expected, line, place, word = CASES[name]
    (finding,) = (f for f in lint({"conf/ds.json": config, "train.py": code}, capsys) if f["code"] == expected)
    assert (Path(finding["file"]).name, finding["line"]) == ("train.py", line)
    assert word in finding["message"]
    (related,) = finding["related"]
    assert (related["file"], (related["line"], related["column"])) == ("conf/ds.json", place)


def test_the_text_shows_the_other_file(capsys: pytest.CaptureFixture[str]) -> None:
    config, code, *_ = CASES["zero.Init at stage 1"]
    lint({"conf/ds.json": config, "train.py": code}, capsys)
    main(["lint", "train.py", "--select", "XF"])
    assert "see conf/ds.json:2:24: stage 1" in capsys.readouterr().out
    main(["lint", "train.py", "--select", "XF", "--format", "sarif"])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (other,) = result["relatedLocations"]
    assert other["physicalLocation"]["artifactLocation"]["uri"] == "conf/ds.json"


def test_the_launch_line_decides_what_divides(capsys: pytest.CaptureFixture[str]) -> None:
    config = f'{{{SIZES}, "zero_optimization": {{"stage": 3, "zero_hpz_partition_size": 16}}, {ADAM}}}'
    files = {
        "ds.json": config,
        "train.py": ENGINE.replace("conf/", ""),
        "run.sh": "torchrun --nproc_per_node 8 --nnodes 3 train.py\n",
    }
    (finding,) = lint(files, capsys)
    assert finding["code"] == "DS601"
    assert "24 ranks" in finding["message"]
    assert [(place["file"], place["line"]) for place in finding["related"]] == [("run.sh", 1)]


def test_a_section_that_the_code_leaves_unread(capsys: pytest.CaptureFixture[str]) -> None:
    config = f'{{{SIZES}, {ADAM},\n "activation_checkpointing": {{"partition_activations": true}}}}'
    code = ENGINE.replace("conf/", "")
    (finding,) = lint({"ds.json": config, "train.py": code}, capsys)
    assert (finding["code"], finding["severity"], finding["line"]) == ("XF302", "warning", 2)
    assert [(place["file"], place["line"]) for place in finding["related"]] == [("train.py", 2)]
    assert lint({"train.py": "import mylib\n" + code}, capsys) == [], "mylib may read it: that is advice"
    assert [f["code"] for f in lint({}, capsys, "--info") if f["severity"] == "info" and f["code"][0] == "X"] == [
        "XF302"
    ]
    configured = code + 'deepspeed.checkpointing.configure(None, deepspeed_config="ds.json")\n'
    assert lint({"train.py": configured}, capsys) == []


def test_isolated_looks_at_nothing_beside(capsys: pytest.CaptureFixture[str]) -> None:
    config = f'{{{SIZES}, {ADAM}, "activation_checkpointing": {{"partition_activations": true}}}}'
    files = {"ds.json": config, "train.py": ENGINE.replace("conf/", "")}
    assert [finding["code"] for finding in lint(files, capsys)] == ["XF302"]
    main(["lint", "ds.json", "--isolated", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["findings"] == []


def test_a_launch_line_and_the_config_disagree(capsys: pytest.CaptureFixture[str]) -> None:
    config = f'{{{SIZES}, "zero_optimization": {{"stage": 2}}, {ADAM},\n "gradient_accumulation_steps": 8}}'
    line = "torchrun --nproc_per_node 2 train.py --deepspeed ds.json \\\n  --learning_rate=1e-4 --max_steps $N "
    files = {"ds.json": config, "run.sh": f"set -e\n{line} --gradient_accumulation_steps 4\n"}
    (finding,) = lint(files, capsys)
    assert (finding["code"], finding["line"]) == ("XF308", 2)
    assert (
        "gradient_accumulation_steps is 8 here, and the launch line says --gradient_accumulation_steps 4"
        in (finding["message"])
    )
    assert [(place["file"], place["line"]) for place in finding["related"]] == [("run.sh", 2)]
    assert lint({"run.sh": f"{line} --gradient_accumulation_steps $STEPS\n"}, capsys) == []
