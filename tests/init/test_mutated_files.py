"""Files with a few characters wrong: a spec that reads, or a refusal that names the file. Never anything else."""

import random
from datetime import date
from pathlib import Path

import pytest
import yaml

from dsgen.cli import main

FILES = sorted(file for file in (Path(__file__).parent / "sets").glob("*/*") if not file.name.startswith("expected"))
INSERTED = [
    "\n",
    '"',
    "'",
    "{",
    "}",
    "$",
    "${",
    "\\",
    "\\\n",
    "#",
    "`",
    "|",
    ";",
    "&&",
    "--",
    "=",
    "\t",
    "9" * 30,
    "\u2028",
]
INSERTED += [
    "é",
    "(",
    ")",
    "[",
    "]",
    ":",
    "- ",
    "*",
    "&a",
    "<<: ",
    "!x ",
    "%",
    "@",
    "\x00",
    "\x1b[2J",
    "?",
    ">",
    "null",
]


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 6)):
        at, kind = chance.randrange(len(text) + 1), chance.random()
        if kind < 0.5:
            text = text[:at] + chance.choice(INSERTED) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[at + chance.randint(1, 20) :]
        else:
            other = chance.randrange(len(text) + 1)
            text = text[:at] + text[other : other + 40] + text[at:]
    return text


def _try(seed: int, count: int, capsys: pytest.CaptureFixture[str]) -> int:
    chance, made = random.Random(seed), 0
    for _ in range(count):
        file = chance.choice(FILES)
        Path(file.name).write_text(mutated(file.read_text(encoding="utf-8"), chance), encoding="utf-8")
        code = main(["init", "--from", file.name, "-o", "made.yaml", "--force"])
        said = capsys.readouterr().err
        assert code in (0, 2), said
        assert "\x1b" not in said
        if code == 0:
            made += 1
            assert isinstance(yaml.safe_load(Path("made.yaml").read_text(encoding="utf-8")), dict | None)
        else:
            assert file.name in said
    return made


def test_some_of_them_every_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _try(date.today().toordinal(), 120, capsys) > 10


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_many_of_them(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _try(seed, 500, capsys) > 50
