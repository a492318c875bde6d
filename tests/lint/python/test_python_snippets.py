"""Snippets of training code: every finding stands as a comment on the very line, and there are no others.

A file holds snippets, each under a line ``### what it is``. A comment ``# TC201`` (or several codes, ``# TC201 TC204``)
says what is found on its line. Advice (info) counts, too.
"""

import re
from pathlib import Path

import pytest
from python_lint import lint

FOLDER = Path(__file__).parent / "snippets"
_TITLE = re.compile(r"^### (.+)\n", re.MULTILINE)
_EXPECTED = re.compile(r"#((?: TC\d{3})+)$")


def snippets() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.py.txt")):
        _, *parts = _TITLE.split(file.read_text("utf-8"))
        for title, text in zip(parts[::2], parts[1::2], strict=True):
            name = f"{file.name.partition('.')[0]}: {title}"
            assert name not in found, "each snippet has its own title"
            found[name] = text
    return found


SNIPPETS = snippets()


@pytest.mark.parametrize("text", SNIPPETS.values(), ids=SNIPPETS.keys())
def test_snippet(text: str) -> None:
    expected = {
        (number, code)
        for number, line in enumerate(text.splitlines(), 1)
        if (match := _EXPECTED.search(line))
        for code in match[1].split()
    }
    findings = lint(text)
    found = {(finding.range.line, finding.code) for finding in findings}
    assert found == expected, [f"{finding.range.line}: {finding.code} {finding.message}" for finding in findings]


def test_there_are_snippets_of_both_kinds() -> None:
    bad = [text for text in SNIPPETS.values() if re.search(r"# TC\d", text)]
    assert len(bad) >= 30
    assert len(SNIPPETS) - len(bad) >= 40
