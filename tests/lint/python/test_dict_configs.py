"""DeepSpeed configs that code writes as dicts: found with their places; what is not literal is not guessed."""

import json
from pathlib import Path

import pytest
from python_lint import lint

from dsgen.cli import main
from dsgen.lint.target import make_target

TARGET = make_target("0.19.8")


def found(text: str) -> list[tuple[str, int, int]]:
    """Codes for configs, with lines and columns."""
    shown = [finding for finding in lint(text, target=TARGET) if finding.code.startswith("DS")]
    return [(finding.code, finding.range.line, finding.range.column) for finding in shown]


def given(config: str, taker: str = "deepspeed.initialize(model=net, config={})") -> str:
    return (
        f"import deepspeed\nfrom transformers import TrainingArguments\nconfig = {config}\n{taker.format('config')}\n"
    )


WRONG = """{
    "train_micro_batch_size_per_gpu": 1,
    "gr\xf6\xdfe": "\U0001f600", "own": [1, (2, -3)],
    "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}},
}"""


def test_places_count_as_people_do() -> None:
    assert found(given(WRONG)) == [("DS110", 5, 5), ("DS110", 5, 19), ("DS301", 6, 39)]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"train_batch_size": args.n, "zero_optimization": {"stage": 9}}', ["DS112"]),
        ('{"train_batch_size": 8, "zero_optimization": {"stage": args.n, "offload_param": {"device": "cpu"}}}', []),
        ('{"train_batch_size": 8, "zero_optimization": make()}', []),
        ('{"train_batch_size": 8, "zero_optimization": {**base, "offload_param": {"device": "cpu"}}}', []),
        ('{**base, "zero_optimization": {"stage": 9}}', []),
        ('{"train_batch_size": 8, name: 1, "own": 1}', []),
        ('{"own": args.n, "train_batch_size": 8}', []),
        ('{"zero_optimization": {"stage": 2}}', ["DS202"]),
        ('{"zero_optimization": {"stage": 2}, "train_batch_size": n}', []),
        ('{"fp16": {"enabled": args.fp16}, "bf16": {"enabled": True}, "train_batch_size": 8}', []),
        ('{"fp16": {"enabled": True}, "bf16": {"enabled": True}, "train_batch_size": n}', ["DS401"]),
        ('{"train_batch_size": 8, "fp16": {"enabled": True, "loss_scale": f"{n}"}}', []),
        ('{"train_batch_size": 8, "train_batch_size": 9}', ["DS102"]),
    ],
)
def test_what_is_not_literal_is_not_guessed(config: str, expected: list[str]) -> None:
    assert [code for code, _, _ in found(given(config))] == expected


@pytest.mark.parametrize(
    "change",
    [
        'config["train_batch_size"] = 8',
        'config["zero_optimization"]["stage"] = 2',
        "config.update(more)",
        'config.pop("own")',
        "config |= more",
        'del config["own"]',
    ],
)
def test_what_is_changed_later_is_left_alone(change: str) -> None:
    config = '{"own": 1, "train_batch_size": 8, "zero_optimization": {"stage": 9}}'
    assert found(given(config)) != []
    assert found(given(config, f"{change}\ndeepspeed.initialize(model=net, config={{}})")) == []


def test_who_takes_it_decides() -> None:
    config = '{"gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}}'
    assert [code for code, _, _ in found(given(config))] == ["DS202"]
    assert found(given(config, "TrainingArguments('out', deepspeed={})")) == []
    assert found(given(config, "train({})")) == [], "no whole config: something may be added"
    whole = '{"own": 1, "train_batch_size": 8, "zero_optimization": {"stage": 2}}'
    assert [code for code, _, _ in found(given(whole, "train({})"))] == ["DS110"]


def test_comments_hide_and_fixes_write_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = given(
        '{\n    "train_batch_size": 8,\n    "own": 1,  # dsgen: ignore[DS110]\n'
        '    "aio": {"thread_count": 4},\n    "fp16": {"enabled": True, "loss_scale": 128},\n}'
    )
    (tmp_path / "train.py").write_text(text, "utf-8")
    assert main(["lint", str(tmp_path / "train.py"), "--format", "json", "--deepspeed", "0.19.8"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(finding["code"], finding["path"]) for finding in findings] == [("DS114", None), ("DS402", None)]
    assert main(["lint", str(tmp_path / "train.py"), "--unsafe-fixes", "--deepspeed", "0.19.8"]) == 0
    expected = text.replace("thread_count", "intra_op_parallelism").replace("128", "0")
    assert (tmp_path / "train.py").read_text("utf-8") == expected
