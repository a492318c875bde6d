"""Fixes change what they are to change and nothing else, once, and bring no mistake that was not there."""

import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from console import dsgen
from deepspeed_configs import DEEPSPEED, OWN, corpus, mutated, real_values

from dsgen.cli import main
from dsgen.documents.document import Range
from dsgen.lint.finding import Edit, Finding, Fix
from dsgen.lint.fixing import cured
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import LintTarget, make_target

# A renamed key (safe), keys that a scheduler lacks (safe), a misspelt section and a wrong loss scale (unsafe).
WRONG = """\
{
  // how much at once
  "train_batch_size": 8,  # in all
  "aio": {"thread_count": 4, "block_size": 1048576},

  "scheduler": {
\t"type": "WarmupLR"
  },
  /* and precision */
  "fp16": {"enabled": true, "loss_scale": 128},
}
"""
SAFELY = WRONG.replace('"thread_count"', '"intra_op_parallelism"').replace(
    '"WarmupLR"\n', '"WarmupLR",\n\t"params": {}\n'
)
WHOLLY = SAFELY.replace('"loss_scale": 128', '"loss_scale": 0')


def lint(*args: str | Path) -> int:
    return main(["lint", *map(str, args)])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("ds_config.json").write_text(WRONG, "utf-8")
    return Path("ds_config.json")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("flag", "expected", "code"), [("--fix", SAFELY, 1), ("--unsafe-fixes", WHOLLY, 0)])
def test_comments_order_indentation_and_line_ends_stay(
    file: Path, flag: str, expected: str, code: int, line_end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(WRONG.replace("\n", line_end).encode())
    assert lint(file, flag) == code, capsys.readouterr().out
    assert file.read_bytes().decode() == expected.replace("\n", line_end)
    assert lint(file, flag) == code, "fixing twice"
    assert file.read_bytes().decode() == expected.replace("\n", line_end)
    assert " fixed, " in capsys.readouterr().out


def test_a_fixed_file_keeps_its_mode_and_a_link_stays_one(file: Path) -> None:
    file.chmod(0o640)
    Path("link.json").symlink_to(file)
    lint("link.json", "--fix")
    assert Path("link.json").is_symlink()
    assert file.read_text("utf-8") == SAFELY
    assert file.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in Path().iterdir()} == {"ds_config.json", "link.json"}, "nothing half-written stays"


def test_a_file_that_cannot_be_written_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.resolve().chmod(0o555)
    try:
        if not _can_write(file.parent):
            assert lint(file, "--fix") == 2
            assert "can't write" in capsys.readouterr().err
    finally:
        file.parent.resolve().chmod(0o755)
    assert file.read_text("utf-8") in (WRONG, SAFELY)


def _can_write(folder: Path) -> bool:
    """Root can, whatever the mode says."""
    try:
        (folder / "probe").write_text("", "utf-8")
    except OSError:
        return False
    (folder / "probe").unlink()
    return True


def test_diff_changes_nothing_and_can_be_applied(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint(file, "--diff") == 1
    patch = capsys.readouterr().out
    assert file.read_text("utf-8") == WRONG
    assert patch.startswith("--- a/ds_config.json\n+++ b/ds_config.json\n")
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=patch.encode(), check=True, timeout=60)
    assert file.read_text("utf-8") == SAFELY
    assert lint(file, "--diff") == 1, "the loss scale is left"
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err == "1 finding is left as found; dsgen lint without --diff says what\n"


def test_exit_codes_follow_what_is_left(file: Path) -> None:
    file.write_text('{"train_batch_size": 8, "aio": {"thread_count": 4}}', "utf-8")
    assert lint(file) == 1
    assert lint(file, "--diff") == 1
    assert lint(file, "--fix") == 0
    assert lint(file) == 0


def test_only_what_is_selected_is_fixed(file: Path) -> None:
    lint(file, "--fix", "--ignore", "DS114")
    assert "thread_count" in file.read_text("utf-8")
    assert '"params": {}' in file.read_text("utf-8")


def test_standard_input_is_fixed_to_standard_output(tmp_path: Path) -> None:
    command = ("lint", "-", "--stdin-name", "a.json", "--unsafe-fixes")
    ran = dsgen(*command, cwd=tmp_path, stdin=WRONG)
    assert ran.stdout == WHOLLY
    assert ran.returncode == 0
    assert "fixed" in ran.stderr
    clean = dsgen(*command, cwd=tmp_path, stdin='{"train_batch_size": 8}')
    assert clean.stdout == '{"train_batch_size": 8}', "a filter hands on what it has nothing to say of"


def test_a_python_file_keeps_its_encoding(tmp_path: Path) -> None:
    text = """\
# -*- coding: latin-1 -*-
# gr\xf6\xdfer
import torch


def train(model, batches, optimizer, accumulation_steps):
    for step, batch in enumerate(batches):
        loss = model(batch).loss / accumulation_steps
        loss.backward()
        if step % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
    path = tmp_path / "train.py"
    path.write_bytes(text.encode("latin-1"))
    lint(path, "--unsafe-fixes")
    assert path.read_bytes().decode("latin-1") == text.replace("if step %", "if (step + 1) %")


def test_edits_that_touch_are_made_one_after_the_other() -> None:
    def rename(old: str, new: str, column: int) -> Finding:
        edit = Edit(Range(1, column, 1, column + len(old)), new)
        place = Range(1, column, 1, column + 1)
        fix = Fix("", (edit,))
        return Finding(file="", range=place, code=old, rule="", severity="error", message="", fix=fix)

    def found(data: bytes) -> list[Finding]:
        return [rename(chr(old), chr(old - 32), at) for at, old in enumerate(data, start=1) if chr(old).islower()]

    assert cured(b"abCd", "utf-8", found, lambda _: True) == b"ABCD"


def test_a_fix_that_does_harm_is_not_made_and_keeps_no_other_away() -> None:
    def found(data: bytes) -> list[Finding]:
        text = data.decode()
        edits = {"a": ("harm", "xx"), "b": ("cure", "-"), "x": ("worse", "x")}
        return [
            Finding(
                file="",
                range=Range(1, at, 1, at + 1),
                code=edits[letter][0],
                rule="",
                severity="error",
                message="",
                fix=Fix("", (Edit(Range(1, at, 1, at + 1), edits[letter][1]),)),
            )
            for at, letter in enumerate(text, start=1)
            if letter in edits
        ]

    assert cured(b"a-b", "utf-8", found, lambda _: True) == b"a--"


def cure(data: bytes, target: LintTarget, *, unsafe: bool) -> tuple[bytes, list[Finding], list[Finding]]:
    def found(text: bytes) -> list[Finding]:
        return lint_bytes("x.json", text, DEEPSPEED, target)

    better = cured(data, "utf-8", found, lambda finding: finding.fix is not None and (finding.fix.safe or unsafe))
    return better, found(data), found(better)


def check_properties(data: bytes, target: LintTarget, *, unsafe: bool) -> bool:
    """What must hold of every fix; returns whether there was one."""
    better, before, after = cure(data, target, unsafe=unsafe)
    new = Counter(finding.code for finding in after) - Counter(finding.code for finding in before)
    assert not new, (data.decode(), better.decode(), new)
    assert cure(better, target, unsafe=unsafe)[0] == better, (data.decode(), better.decode())
    comments = re.compile(rb"^\s*(?://|#).*$", re.MULTILINE)
    assert comments.findall(better) == comments.findall(data)
    return better != data


VERSIONS = [None, "0.14.0", "0.16.4", "0.17.1", "0.19.8"]
LOADERS: list[Any] = [None, "deepspeed", "transformers", "accelerate", "lightning"]


@pytest.mark.skipif(not corpus(), reason="DSGEN_SHARED is unset: no corpus of real configs at hand")
def test_real_files_are_fixed_once_and_get_no_new_finding() -> None:
    fixed = 0
    for real in corpus():
        rng = random.Random(real.file)
        target = make_target(rng.choice(VERSIONS), rng.choice(LOADERS), rng.choice([None, 8]))
        fixed += check_properties(real.path.read_bytes(), target, unsafe=True)
    assert fixed >= 10


@pytest.mark.parametrize("unsafe", [False, True])
def test_mutations_are_fixed_once_and_get_no_new_finding(unsafe: bool) -> None:
    rng = random.Random()
    fixed = 0
    configs = [*OWN, *OWN, *real_values()]
    for _ in range(250):
        config = mutated(mutated(rng.choice(configs), rng), rng)
        text = json.dumps(config, indent=rng.choice([None, 2, "\t"]))
        target = make_target(rng.choice(VERSIONS), rng.choice(LOADERS), rng.choice([None, 24]), rng.choice([None, 8]))
        fixed += check_properties(text.encode(), target, unsafe=unsafe)
    assert fixed > 0
