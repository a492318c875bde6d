"""What a run is called, and what its source is called, says nothing of it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from dsgen.score.predict import score
from dsgen.score.runs import read_runs
from dsgen.score.throughput import speeds

SHARED = os.environ.get("DSGEN_SHARED")


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED does not name a folder with measurements/measured.csv")
def test_names_change_no_prediction() -> None:
    runs = read_runs(str(Path(SHARED or "") / "measurements" / "measured.csv")).rows
    renamed = [replace(run, row_id=f"x{index}", source=f"x{run.source}") for index, run in enumerate(runs)]
    for one, other in zip(speeds(runs), speeds(renamed), strict=True):
        assert (one.predicted, one.measured, one.relative) == (other.predicted, other.measured, other.relative)
    for run, other_run in zip(runs, renamed, strict=True):
        said, again = score(run), score(other_run)
        assert [(each.figure, each.fits) for each in said] == [(each.figure, each.fits) for each in again]
