"""What we say DeepSpeed refuses, the installed DeepSpeed refuses; and what it refuses, we say."""

import random

from agreement import cases, too_low, unlisted

from dsgen.facts.versions import libraries

MUTATIONS = 700
# Of this few, one that is wrong must not fail a section.
OVERALL, EACH, FEWEST = 0.99, 0.95, 40


def test_the_linter_says_what_the_installed_release_refuses() -> None:
    seed = random.randrange(1 << 32)
    found = cases(libraries()["deepspeed"].executed, None, MUTATIONS, random.Random(seed))
    assert sum(case.refusal is not None for case in found) > MUTATIONS // 4
    assert sum(bool(case.claims) for case in found) > MUTATIONS // 5
    assert list(too_low(found, OVERALL, EACH, FEWEST)) == [], f"seed {seed}"
    assert list(unlisted(found)) == [], f"seed {seed}: neither right nor in disagreements.csv with its reason"
