"""Six releases of DeepSpeed: each is what the schema says it is, and refuses what the linter says it refuses."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compare_deepspeed import differences, release
from deepspeed_configs import Mutation, lint, mutation, real_values
from deepspeed_releases import RELEASES, unpacked
from test_deepspeed_refusals import VERDICTS, claims_refusal, with_a_micro_batch

from dsgen.lint import schema as sch
from dsgen.lint.finding import Finding
from dsgen.lint.target import LintTarget, make_target

pytestmark = pytest.mark.full

MUTATIONS = 3000
OVERALL, EACH = 0.99, 0.95
FEWEST = 20
"""With fewer cases a section or kind says nothing."""

# Deep trees that the schema leaves open, so that mistakes inside are not told.
UNDESCRIBED = {"compression_training": "removed in 0.19.7", "data_efficiency": "its curricula and schedules"}


@pytest.fixture(scope="module", params=RELEASES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(request.param, tmp_path_factory.getbasetemp() / "deepspeed")


def verdicts(folder: Path, configs: list[dict[str, Any]]) -> list[str | None]:
    ran = subprocess.run(
        [sys.executable, str(VERDICTS)],
        input=json.dumps(configs),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, "DS_ACCELERATOR": "cpu", "PYTHONPATH": str(folder)},
    )
    said: list[str | None] = json.loads(ran.stdout)
    return said


def is_claim(finding: Finding, target: LintTarget) -> bool:
    """Whether the parser is said to refuse it; what plain code looks up is met by the engine, if by anyone."""
    if not claims_refusal(finding) or finding.path is None:
        return False
    schema = sch.deepspeed_schema()["properties"][finding.path[0]]
    return sch.is_pydantic(schema, target.deepspeed) and "divides by it" not in finding.message


def test_the_schema_says_what_the_release_is(folder: Path) -> None:
    assert sorted(differences(release(folder))) == []


def test_the_linter_says_what_the_release_refuses(folder: Path) -> None:
    target = make_target(folder.name.partition("-")[2], "deepspeed", world_size=1)
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    base = [with_a_micro_batch(config) for config in real_values()]
    # Of what is refused as it stands no mutation could be told apart.
    base = [config for config, said in zip(base, verdicts(folder, base), strict=True) if said is None]
    mutations = [mutation(rng.choice(base), rng) for _ in range(MUTATIONS)]
    mutations = [mutated for mutated in mutations if mutated.section not in UNDESCRIBED]
    said = verdicts(folder, [mutated.config for mutated in mutations])
    told, missed, confirmed, false = [], [], [], []
    for mutated, refusal in zip(mutations, said, strict=True):
        findings = lint(mutated.config, target)
        if refusal and "GDS" in refusal:
            continue  # GPUDirect Storage is refused for want of a GPU here, which a file does not tell
        claim = [finding.message for finding in findings if is_claim(finding, target)]
        if refusal:
            is_told = any(finding.severity == "error" for finding in findings)
            (told if is_told else missed).append((mutated, refusal))
        if claim:
            (confirmed if refusal else false).append((mutated, claim))
    assert len(confirmed) > MUTATIONS // 20
    for what, right, wrong in (("recall", told, missed), ("precision", confirmed, false)):
        listed = "\n".join(f"{one.kind} in {one.section or 'the top level'}: {words}" for one, words in wrong)
        assert share(right, wrong) >= OVERALL, f"{what}, seed {seed}:\n{listed}"
        for name, low in by(lambda one: one.section, right, wrong) | by(lambda one: one.kind, right, wrong):
            raise AssertionError(f"{what} of {name or 'the top level'} is {low:.3f}, seed {seed}:\n{listed}")


Told = list[tuple[Mutation, Any]]


def share(right: Told, wrong: Told) -> float:
    return len(right) / (len(right) + len(wrong))


def by(group: Callable[[Mutation], str], right: Told, wrong: Told) -> set[tuple[str, float]]:
    """Groups that are told less well than they must be, each with its share."""
    good, bad = (Counter(group(one) for one, _ in told) for told in (right, wrong))
    counts = {name: (good[name], good[name] + bad[name]) for name in good | bad}
    return {(name, n / of) for name, (n, of) in counts.items() if of >= FEWEST and n / of < EACH}
