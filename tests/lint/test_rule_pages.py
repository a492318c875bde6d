"""Every rule's docstring is its page and its test: bad is found, good and fixed are clean, fix(bad) is fixed."""

import ast
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest
from deepspeed_configs import lint, target_by

from dsgen.documents.hjson_text import read_hjson
from dsgen.lint.finding import Finding
from dsgen.lint.fixing import fixed
from dsgen.lint.neighbours import Neighbours
from dsgen.lint.rule import RULES_FOLDER, Rule, rules_for
from dsgen.lint.target import LintTarget

_BLOCK = re.compile(r"^ *```json (?P<head>[^\n]+)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
RULES = rules_for("deepspeed")
MAKERS = ("error", "warning", "make")


# Code that lies beside the examples of a page.
_CODE = re.compile(r"^ *```(?:python|sh) beside (?P<name>\S+)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One example of a page; its head is ``bad``, ``good`` or ``fixed``, then ``also=CODE`` and flags."""

    kind: str
    flags: tuple[str, ...]
    text: str
    also: frozenset[str]
    """Codes of other mistakes that the example cannot do without."""
    code: Neighbours | None = None

    @property
    def target(self) -> LintTarget:
        target = target_by(self.flags)
        return replace(target, beside=self.code, loaded_by=self.code.loader) if self.code else target

    def with_code(self, code: Neighbours | None) -> "Block":
        return replace(self, code=code)


def blocks(rule: Rule) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(rule.page):
        kind, *flags = shlex.split(match["head"])
        also = frozenset(word.removeprefix("also=") for word in flags if word.startswith("also="))
        found.append(Block(kind, tuple(word for word in flags if "=" not in word), match["text"], also))
    return found


def shown(findings: list[Finding]) -> list[str]:
    return [f"{finding.code} {finding.message}" for finding in findings]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: Rule, tmp_path: Path) -> None:
    for match in _CODE.finditer(rule.page):
        (tmp_path / match["name"]).write_text(dedent(match["text"]), "utf-8")
    beside = Neighbours(tmp_path / "ds_config.json") if _CODE.search(rule.page) else None
    examples = [block.with_code(beside) for block in blocks(rule)]
    kinds = [block.kind for block in examples]
    assert "bad" in kinds
    assert "good" in kinds
    assert set(kinds) <= {"bad", "fixed", "good"}
    bad = examples[0]
    for block in examples:
        # Advice of other rules is no mistake of an example.
        findings = [f for f in lint(block.text, block.target) if f.severity != "info" or f.code == rule.code]
        codes = {finding.code for finding in findings}
        if block.kind == "bad":
            assert codes == {rule.code, *block.also}, shown(findings)
            bad = block
            continue
        assert codes == set(), shown(findings)
        if block.kind == "fixed":
            fixes = [f.fix for f in lint(bad.text, bad.target) if f.fix and f.code == rule.code]
            assert fixes
            cured = fixed(bad.text, fixes)
            assert read_hjson(cured).value == read_hjson(block.text).value
            assert "".join(cured.split()) == "".join(block.text.split())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_form(rule: Rule) -> None:
    assert re.fullmatch(r"(?:DS|XF)[1-8]\d\d", rule.code)
    assert rule.name == rule.check.__module__.rpartition(".")[2].replace("_", "-"), "the file is named for the mistake"
    assert rule.source
    first = rule.page.splitlines()[0]
    assert first.endswith((".", ":")) or first == first.rstrip()
    assert rule.page.count("```") % 2 == 0


def test_every_fix_leaves_nothing_to_find_and_is_done_once() -> None:
    for rule in RULES:
        for block in blocks(rule):
            fixes = [finding.fix for finding in lint(block.text, block.target) if finding.fix]
            cured = fixed(block.text, fixes)
            again = [finding.fix for finding in lint(cured, block.target) if finding.fix]
            assert fixed(cured, again) == cured, rule.code


def test_codes_and_names_are_unique() -> None:
    assert len(RULES) >= 30
    assert len({rule.name for rule in RULES}) == len({rule.code for rule in RULES}) == len(RULES)


def test_each_finding_says_what_to_write() -> None:
    """No rule makes an error or a warning without a help line, but where the reader of a file gives none itself."""
    mute = []
    for file in sorted(RULES_FOLDER.glob("*/*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            is_mark = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS
            if is_mark and "help" not in {word.arg for word in node.keywords}:  # type: ignore[attr-defined]
                mute.append(f"{file.parent.name}/{file.stem}")
    assert mute == ["python/file_cannot_be_read"]
