"""Real configs of real projects: all of them are read and fitted, whatever stands in them."""

import os
from collections import Counter
from pathlib import Path

import pytest
from smoke_helpers import CPU

from dsgen.errors import InputError
from dsgen.smoke.adapt import adapt
from dsgen.smoke.inputs import read_case
from dsgen.smoke.jobs import readable_trials
from dsgen.smoke.values import Options

SHARED = os.environ.get("DSGEN_SHARED")


@pytest.mark.skipif(SHARED is None, reason="set DSGEN_SHARED to the folder that holds the corpus of public configs")
def test_the_corpus_is_read_and_fitted() -> None:
    files = sorted(Path(SHARED or "", "corpus", "deepspeed_json").iterdir())
    assert len(files) > 300
    outcomes: Counter[str] = Counter()
    for file in files:
        try:
            case = read_case(str(file))
        except InputError:
            outcomes["malformed"] += 1
            continue
        adapted = adapt(case, CPU, Options(), 2, Path("run"))
        outcomes["fitted"] += 1
        outcomes["compared"] += bool(readable_trials(adapted, ("none", 1), 2))
        changed = {change.key for change in adapted.changes}
        # What no change names is as it was.
        assert {key for key in case.config if adapted.config.get(key) != case.config[key]} <= {
            key.partition(".")[0] for key in changed
        }
    assert outcomes["compared"] > 0.9 * outcomes["fitted"]  # the rest are templates with words for numbers
    assert outcomes["malformed"] <= 1  # one file has a brace too many
