"""Rules for Accelerate's files: each page holds its own test, with code beside the file where it speaks of code."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from dsgen.lint.finding import Finding
from dsgen.lint.fixing import fixed
from dsgen.lint.kinds import kind_of
from dsgen.lint.project import forget, target_of_file
from dsgen.lint.rule import Rule, rules_for
from dsgen.lint.run import lint_bytes
from dsgen.lint.settings import Settings

_BLOCK = re.compile(r"^ *```(?:yaml|python) (?P<head>[^\n]+)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
RULES = rules_for("accelerate")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    name: str = ""
    """Of a file beside."""


def blocks(rule: Rule) -> Iterator[Block]:
    for match in _BLOCK.finditer(rule.page):
        kind, *words = shlex.split(match["head"])
        yield Block(kind, dedent(match["text"]), *words)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    return tmp_path


def lint(text: str) -> list[Finding]:
    forget()
    kind = kind_of("accelerate.yaml")
    assert kind is not None
    Path("accelerate.yaml").write_text(text, "utf-8")
    target = target_of_file("accelerate.yaml", {"deepspeed": "0.19.8"}, Settings())
    return [f for f in lint_bytes("accelerate.yaml", text.encode(), kind, target) if f.severity != "info"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: Rule) -> None:
    pages = list(blocks(rule))
    assert {"bad", "good"} <= {block.kind for block in pages} <= {"bad", "fixed", "good", "beside"}
    for block in pages:
        if block.kind == "beside":
            Path(block.name).write_text(block.text, "utf-8")
    before = ""
    for block in pages:
        if block.kind == "beside":
            continue
        findings = lint(block.text)
        expected = {rule.code} if block.kind == "bad" else set()
        assert {finding.code for finding in findings} == expected, [finding.message for finding in findings]
        if block.kind == "fixed":
            fixes = [finding.fix for finding in lint(before) if finding.fix]
            assert fixed(before, fixes).replace('"', "") == block.text
        before = block.text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_form(rule: Rule) -> None:
    assert re.fullmatch(r"(?:AC|XF)[1-8]\d\d", rule.code)
    assert rule.name == rule.check.__module__.rpartition(".")[2].replace("_", "-"), "the file is named for the mistake"
    assert rule.source
    assert rule.page.splitlines()[0].endswith((".", ":"))


FILE = "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  deepspeed_config_file: conf/ds.json\n"
CODE = "from accelerate import Accelerator\na = Accelerator(gradient_accumulation_steps=4)\n"


def test_the_config_that_it_names_is_read_where_the_project_starts() -> None:
    Path("conf").mkdir()
    Path("conf/ds.json").write_text('{"zero_optimization": {"stage": 3}, "gradient_accumulation_steps": 8}', "utf-8")
    (finding,) = lint(FILE + "  zero_stage: 2\n")
    assert "zero_stage 2 here, zero_optimization.stage 3 there" in finding.message
    Path("train.py").write_text(CODE, "utf-8")
    (finding,) = lint(FILE)
    assert (finding.code, finding.range.line) == ("XF201", 4)
    assert finding.related[0].file == "train.py"
    assert finding.related[0].range[:2] == (2, 45)


def test_code_that_another_file_starts_is_not_meant() -> None:
    text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n  gradient_accumulation_steps: 8\n"
    Path("train.py").write_text(CODE, "utf-8")
    assert [finding.code for finding in lint(text)] == ["XF201"]
    Path("other.yaml").write_text("distributed_type: FSDP\n", "utf-8")
    assert lint(text) == [], "two such files: which one starts the code is open"
    Path("run.sh").write_text("accelerate launch --config_file accelerate.yaml train.py\n", "utf-8")
    assert [finding.code for finding in lint(text)] == ["XF201"]
    Path("run.sh").write_text("accelerate launch --config_file accelerate.yaml other.py\n", "utf-8")
    assert lint(text) == []
