"""Named constants and optimizers: each has a unit and a source, and each is used."""

from pathlib import Path

import pytest

from dsgen.facts.constants import constant, constants
from dsgen.facts.optimizers import find_optimizer, optimizers

PACKAGE = Path(__file__).resolve().parents[2] / "dsgen"
CODE = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", list(constants()))
def test_constant_has_unit_and_source_and_is_used(name: str) -> None:
    row = constants()[name]
    assert row.unit
    assert row.source
    assert row.note
    assert f'"{name}"' in CODE


def test_sizes_come_in_bytes() -> None:
    assert constant("cuda_context") == 2**29
    assert constant("loading_shard") == 5e9


@pytest.mark.parametrize(
    ("name", "momentum", "kept"), [("AdamW", 0.0, 2), ("adam", 0.0, 2), ("sgd", 0.0, 0), ("SGD", 0.9, 1)]
)
def test_optimizer_states(name: str, momentum: float, kept: int) -> None:
    found = find_optimizer(name)
    assert found is not None
    assert found.kept(momentum) == kept


def test_optimizers_have_sources() -> None:
    assert all(row.source for row in optimizers().values())
