"""Six releases of DeepSpeed: each is what the schema says it is, and refuses what the linter says it refuses."""

import random
from pathlib import Path

import pytest
from agreement import cases, too_low, unlisted
from compare_deepspeed import differences, release
from deepspeed_releases import RELEASES, unpacked

pytestmark = pytest.mark.full

MUTATIONS = 3000
OVERALL, EACH = 0.99, 0.95
FEWEST = 20
"""With fewer cases a section or kind says nothing."""


@pytest.fixture(scope="module", params=RELEASES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(request.param, tmp_path_factory.getbasetemp() / "deepspeed")


def test_the_schema_says_what_the_release_is(folder: Path) -> None:
    assert sorted(differences(release(folder))) == []


def test_the_linter_says_what_the_release_refuses(folder: Path) -> None:
    seed = random.randrange(1 << 32)
    found = cases(folder.name.partition("-")[2], folder, MUTATIONS, random.Random(seed))
    assert sum(case.refusal is not None for case in found) > MUTATIONS // 4
    assert sum(bool(case.claims) for case in found) > MUTATIONS // 5
    assert list(too_low(found, OVERALL, EACH, FEWEST)) == [], f"seed {seed}"
    wrong = list(unlisted(found))
    assert not wrong, "\n".join((f"seed {seed}: neither right nor in disagreements.csv with its reason", *wrong))
