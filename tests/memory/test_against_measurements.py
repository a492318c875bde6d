"""The ledger's first cut against published measured runs; nothing in it was fitted to them."""

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
from measured_rows import covered

SHARED = os.environ.get("DSGEN_SHARED")


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED does not name a folder with measurements/measured.csv")
def test_measured_runs(record_property: Callable[[str, object], None]) -> None:
    rows = list(covered(Path(SHARED or "") / "measurements" / "measured.csv"))
    errors = sorted(abs(row.error) for row in rows)
    ninetieth = errors[int(0.9 * len(errors))]
    report = "\n".join(
        f"{row.row_id} {row.source} {row.measured:.2f} GiB measured, {row.predicted:.2f} predicted, {row.error:+.1%}"
        for row in sorted(rows, key=lambda row: (row.source, row.error))
    )
    print(f"{report}\n{len(rows)} rows, median {median(errors):.1%}, 90th percentile {ninetieth:.1%}")  # noqa: T201
    record_property("median", median(errors))
    record_property("ninetieth", ninetieth)
    assert len(rows) >= 20, report
    assert median(errors) <= 0.08, report
    assert ninetieth <= 0.20, report
