"""The arithmetic of a score, by rows made by hand."""

import csv
from pathlib import Path

import pytest
from made_runs import table

from dsgen.score.predict import Figure, Scored
from dsgen.score.runs import Run, read_runs
from dsgen.score.summary import quantile, summary
from dsgen.units import GIB


def scored(folder: Path, *rows: tuple[dict[str, str], int | None, int | None, bool]) -> list[tuple[Scored, ...]]:
    """(cells, measured, predicted, predicted to fit) each; bands of a tenth to either side."""
    runs: tuple[Run, ...] = read_runs(table(folder, *(cells for cells, *_ in rows))).rows
    made: list[tuple[Scored, ...]] = []
    for run, (_, measured, predicted, fits) in zip(runs, rows, strict=True):
        figure = predicted and Figure(predicted=predicted, low=predicted * 9 // 10, high=predicted * 11 // 10)
        made.append((Scored(run=run, statistic="allocated", measured=measured, figure=figure or None, fits=fits),))
    return made


def test_each_source_weighs_the_same(tmp_path: Path) -> None:
    """Three rows of a are exact, the one row of b is 30 % off: half the weight has no error, half has 30 %."""
    a, b = {"source_id": "a"}, {"source_id": "b"}
    found = summary(
        scored(tmp_path, (a, 100, 100, True), (a, 100, 100, True), (a, 100, 100, True), (b, 100, 130, True))
    )
    assert found.all.errors.median == 0
    assert found.all.errors.ninetieth == pytest.approx(0.3)
    assert found.all.errors.coverage == pytest.approx(0.5)
    assert found.sources["b"].errors.median == pytest.approx(0.3)
    assert found.sources["a"].errors.coverage == 1
    assert found.all.errors.widest == pytest.approx(0.2)


def test_bias_has_a_sign(tmp_path: Path) -> None:
    found = summary(scored(tmp_path, ({}, 100, 80, True), ({}, 100, 90, True), ({}, 100, 125, True)))
    assert found.all.errors.bias == pytest.approx(-0.1)
    assert found.all.errors.median == pytest.approx(0.2)


def test_outcomes_are_counted_apart_from_errors(tmp_path: Path) -> None:
    """A run out of memory has no figure; one without an outcome counts for errors only."""
    oom = {"outcome": "oom"}
    rows = scored(
        tmp_path,
        ({}, 100, 100, True),
        ({}, 100, 100, False),
        (oom, None, 100, False),
        (oom, None, 100, True),
        ({"outcome": ""}, 100, 100, True),
    )
    found = summary(rows).all
    assert found.errors.count == 3
    assert (found.outcomes.fits, found.outcomes.accepted) == (2, 1)
    assert (found.outcomes.out_of_memory, found.outcomes.false_fits) == (2, 1)


def test_nothing_measured_gives_nothing(tmp_path: Path) -> None:
    errors = summary(scored(tmp_path, ({}, None, 100, True))).all.errors
    assert (errors.count, errors.median, errors.coverage) == (0, None, None)


@pytest.mark.parametrize(("share", "value"), [(0.5, 2.0), (0.9, 4.0), (0.1, 1.0), (1.0, 4.0)])
def test_quantile_is_the_smallest_value_that_covers_the_share(share: float, value: float) -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], [1, 1, 1, 1], share) == value


def test_quantile_by_weight() -> None:
    assert quantile([1.0, 2.0], [1, 9], 0.5) == 2.0
    assert quantile([1.0, 2.0], [9, 1], 0.5) == 1.0


def test_a_table_made_for_tests_reads_back(tmp_path: Path) -> None:
    path = table(tmp_path, {"notes": 'a, "b"'})
    with open(path, encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file))["notes"] == 'a, "b"'
    assert GIB == 2**30
