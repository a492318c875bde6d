"""Whatever stands in a document and wherever the cursor is: an answer, never a crash, and soon."""

import itertools
import random
import time

import pytest
from hostile_texts import TEXTS, mutated

from dsgen.lint.target import make_target
from dsgen.lsp.actions import actions
from dsgen.lsp.analysis import analyse
from dsgen.lsp.complete import completions
from dsgen.lsp.hover import hover
from dsgen.lsp.text import Text


def asked(name: str, text: str, rng: random.Random) -> None:
    """Everything that an editor asks, at a few places."""
    document = Text(name, text, 1, rng.choice(["utf-8", "utf-16", "utf-32"]))
    target = make_target(rng.choice(["0.14.0", "0.19.8"]), rng.choice([None, "deepspeed", "transformers"]))
    analysis = analyse(document, was_ours=True)
    for _ in range(3):
        offset = rng.randrange(len(text) + 1)
        assert document.positions.offset(document.positions.position(offset)) <= offset
        hover(document, offset, target, analysis.findings)
        for offer in completions(document, offset, target):
            assert 0 <= offer.start <= offset <= offer.end <= len(text)
    for action in itertools.islice(actions(analysis, 0, len(text), target), 4):
        for start, end, _ in action.edits:
            assert 0 <= start <= end <= len(text)


@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_what_nobody_writes(name: str, text: str) -> None:
    begin = time.process_time()
    asked(name, text, random.Random())
    assert time.process_time() - begin < 10


def changed(count: int) -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for name, text in itertools.islice(mutated(rng), count):
        try:
            asked(name, text, rng)
        except Exception as error:
            raise AssertionError(f"{name}: {text!r}") from error


def test_what_is_being_changed() -> None:
    changed(100)


@pytest.mark.full
def test_what_is_being_changed_for_long() -> None:
    changed(5000)
