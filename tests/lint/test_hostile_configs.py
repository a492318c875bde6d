"""Whatever stands in a config, and whoever it is for: findings in all forms of output, never a crash, and soon."""

import json
import random
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from deepspeed_configs import DEEPSPEED, SCRAPS, mutated, real_values

from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target
from dsgen.report.lint_github import lint_github
from dsgen.report.lint_gitlab import lint_gitlab
from dsgen.report.lint_json import lint_json
from dsgen.report.lint_junit import lint_junit
from dsgen.report.lint_sarif import lint_sarif
from dsgen.report.lint_text import lint_text
from dsgen.report.lint_view import LintView

EXTREMES: list[Any] = [10**400, -(10**400), 1e308, -0.0, 5e-324, float("nan"), float("inf"), "\ud800", "\0", "9" * 5000]
NESTED: list[Any] = [[[[]]], {"a": {"b": [{}]}}, [None], {"enabled": {"enabled": "auto"}}, {"stage": [3]}, [{"lr": 1}]]


def spoilt(value: Any, rng: random.Random) -> Any:
    """A copy with any number of its values replaced by extremes."""
    if isinstance(value, dict):
        return {key: spoilt(inner, rng) for key, inner in value.items()}
    return rng.choice([*SCRAPS, *EXTREMES, *NESTED]) if rng.random() < 0.15 else value


@pytest.mark.parametrize("loaded_by", [None, "deepspeed", "transformers", "accelerate", "lightning"])
def test_no_config_crashes_the_linter(loaded_by: Any) -> None:
    rng = random.Random()
    begin = time.process_time()
    configs = real_values()
    for _ in range(200):
        config = spoilt(mutated(rng.choice(configs), rng), rng)
        text = json.dumps(config, indent=rng.choice([None, 2]))
        version = rng.choice([None, "0.14.0", "0.16.4", "0.17.1", "0.19.8", "1.0", "0.1"])
        target = make_target(version, loaded_by, rng.choice([None, 1, 24]), rng.choice([None, 8]))
        try:
            findings = lint_bytes("x.json", text.encode(), DEEPSPEED, target)
            view = LintView(["x.json"], findings, {"x.json": text})
            assert json.loads(lint_json(view))["files"] == 1
            assert lint_text(view)
            assert json.loads(lint_sarif(view))["version"] == "2.1.0"
            assert len(json.loads(lint_gitlab(view))) == len(findings)
            assert len(list(ElementTree.fromstring(lint_junit(view)).iter("failure"))) == len(findings)
            lint_github(view)
        except Exception as error:
            raise AssertionError(f"{version}: {text}") from error
    assert time.process_time() - begin < 60


def cut(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text))
    return (
        text[:start]
        + rng.choice(["", ",", "}", '"', "#", "//", "'''", "/*", "\x00", "\ufeff", ":"])
        + text[start + rng.randrange(3) :]
    )


def test_no_text_crashes_the_linter() -> None:
    rng = random.Random()
    texts = [json.dumps(config, indent=2) for config in real_values()]
    for _ in range(500):
        text = cut(cut(rng.choice(texts), rng), rng)
        target = make_target(loaded_by=rng.choice([None, "transformers"]))
        try:
            lint_bytes("x.json", text.encode(), DEEPSPEED, target)
        except Exception as error:
            raise AssertionError(text) from error
