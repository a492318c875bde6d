"""Where a release's parser and the linter agree that a config is refused, and where not."""

import csv
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from deepspeed_configs import lint
from mutations import Mutation, bases, mutation

from dsgen.facts.versions import version_key
from dsgen.lint import schema as sch
from dsgen.lint.finding import Finding
from dsgen.lint.target import LintTarget, make_target

VERDICTS = Path(__file__).with_name("deepspeed_verdicts.py")
LIST = Path(__file__).with_name("disagreements.csv")

# Errors that say what the parser does. Our other errors are of what is accepted and then crashes in the engine, or
# trains otherwise than written.
REFUSALS = {"DS111", "DS112", "DS113", "DS115", "DS117", "DS201", "DS202", "DS308", "DS401", "DS403", "DS407", "DS505"}


def verdicts(configs: Sequence[Any], folder: Path | None = None) -> list[str | None]:
    """What the parser of a release (of the installed one) says to each config."""
    environment = {**os.environ, "DS_ACCELERATOR": "cpu"} | ({"PYTHONPATH": str(folder)} if folder else {})
    ran = subprocess.run(
        [sys.executable, str(VERDICTS)],
        input=json.dumps([json.dumps(config) for config in configs]),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env=environment,
    )
    said: list[str | None] = json.loads(ran.stdout)
    return said


def is_claim(finding: Finding, version: tuple[int, ...]) -> bool:
    """Whether a finding says that the parser refuses the file; what it only copies is met by the engine, if at all."""
    if finding.severity != "error" or not finding.path:
        return False
    if finding.code == "DS110":
        return "refuses it" in finding.message and finding.path[0] not in ("optimizer", "scheduler")
    if finding.code not in REFUSALS or "divides by it" in finding.message or "calculates with it" in finding.message:
        return False
    if finding.code == "DS505" and not _needed_by_the_parser(finding.path):
        return False
    if finding.code in ("DS111", "DS112", "DS505"):
        return _is_checked([step for step in finding.path if isinstance(step, str)], version)
    return True


def _needed_by_the_parser(path: Sequence[Any]) -> bool:
    """Whether the parser misses a key that an object lacks: what others read it does not."""
    schema: Any = sch.deepspeed_schema()
    for step in path:
        schema = schema.get("properties", {}).get(step, {})
    needed = {key for keys in sch.facts(schema).get("needs", {}).values() for key in keys}
    return not any("read_by" in sch.facts(schema["properties"][key]) for key in needed)


def _is_checked(path: list[str], version: tuple[int, ...]) -> bool:
    """Whether the parser looks at the value of a key, or opens the section that it should be."""
    parent: Any = sch.deepspeed_schema()
    schema = parent
    for step in path:
        parent, schema = schema, schema.get("properties", {}).get(step) or schema.get("additionalProperties") or {}
        if not isinstance(schema, dict) or "read_by" in sch.facts(schema):
            return False
    known = sch.facts(schema)
    is_opened = "object" in sch.types(schema) and "variants" not in sch.facts(parent) and "dead" not in known
    return sch.is_pydantic(parent, version) or "checked" in known or is_opened


@dataclass(frozen=True)
class Case:
    """One mutation with what both sides say."""

    version: str
    mutation: Mutation
    refusal: str | None
    errors: list[Finding]
    claims: list[Finding]

    @property
    def right(self) -> dict[str, bool]:
        """By measure whether they agree; absent where the measure does not ask."""
        told = {"recall": bool(self.errors)} if self.refusal else {}
        return told | ({"precision": self.refusal is not None} if self.claims else {})

    def __str__(self) -> str:
        said = self.refusal or "; ".join(finding.message for finding in self.claims)
        path = ".".join(self.mutation.path)
        return f"{self.version} {self.mutation.kind} {path} = {self._value!r:.60}: {' '.join(said.split())[:230]}"

    @property
    def _value(self) -> Any:
        value = self.mutation.config
        for step in self.mutation.path:
            value = value.get(step, "(gone)") if isinstance(value, dict) else "(gone)"
        return value


def cases(version: str, folder: Path | None, wanted: int, rng: random.Random) -> list[Case]:
    """Mutations of configs that both sides take, as many refused as accepted."""
    target = make_target(version, "deepspeed", world_size=1)
    base = bases(version_key(version))
    base = [config for config, said in zip(base, verdicts(base, folder), strict=True) if said is None]
    base = [config for config in base if not any(f.severity == "error" for f in lint(config, target))]
    mutations = [mutation(rng.choice(base), rng) for _ in range(2 * wanted)]
    said = list(zip(mutations, verdicts([one.config for one in mutations], folder), strict=True))
    # GPUDirect Storage is refused for want of a GPU here, which a file does not tell.
    said = [(one, refusal) for one, refusal in said if not (refusal and "GDS" in refusal)]
    refused = [one for one in said if one[1]][: wanted // 2]
    accepted = [one for one in said if not one[1]][: len(refused)]
    return [_case(version, one, refusal, target) for one, refusal in refused + accepted]


def _case(version: str, one: Mutation, refusal: str | None, target: LintTarget) -> Case:
    errors = [finding for finding in lint(one.config, target) if finding.severity == "error"]
    return Case(version, one, refusal, errors, [f for f in errors if is_claim(f, target.deepspeed)])


def too_low(found: Iterable[Case], overall: float, each: float, fewest: int) -> Iterator[str]:
    """Every measure that is lower than it must be: over all, by section, and by kind of mutation."""
    found = list(found)
    for measure in ("recall", "precision"):
        asked = [(case, case.right[measure]) for case in found if measure in case.right]
        groups: list[tuple[str, Callable[[Case], str], float]] = [
            ("", lambda _: "all", overall),
            ("section ", lambda case: case.mutation.section or "(top level)", each),
            ("kind ", lambda case: case.mutation.kind, each),
        ]
        for name, group, least in groups:
            of = Counter(group(case) for case, _ in asked)
            good = Counter(group(case) for case, right in asked if right)
            for key, count in of.items():
                if (count >= fewest or not name) and good[key] < least * count:
                    yield f"{measure} of {name}{key}: {good[key]} of {count}"


def unlisted(found: Iterable[Case]) -> Iterator[str]:
    """Disagreements that the list of those with a reason does not hold."""
    with open(LIST, encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    for case in found:
        for measure, right in case.right.items():
            if not right and not any(_covers(row, case, measure) for row in rows):
                yield f"{'missed' if measure == 'recall' else 'false'}: {case}"


def _covers(row: dict[str, str], case: Case, measure: str) -> bool:
    if row["side"] != ("missed" if measure == "recall" else "false"):
        return False
    said = case.refusal or " ".join(finding.message for finding in case.claims)
    return fnmatchcase(".".join(case.mutation.path), row["path"]) and row["words"] in " ".join(said.split())
