"""Rules that a file has no topic of are not loaded, and would have found nothing."""

import random
import subprocess
import sys
from typing import Any

import pytest
from console import ROOT, environment
from deepspeed_configs import DEEPSPEED, lint, mutated, real_values

from dsgen.lint import run
from dsgen.lint.rule import Rule, every_rule, rules_for
from dsgen.lint.target import make_target


def every_rule_for(kind: str, _topics: Any = None) -> tuple[Rule, ...]:
    return rules_for(kind)


def test_what_is_not_loaded_would_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random()
    base = real_values()
    for _ in range(150):
        config = mutated(mutated(rng.choice(base), rng), rng)
        version = rng.choice(("0.14.0", "0.16.4", "0.17.1", "0.19.8"))
        target = make_target(version, rng.choice((None, "deepspeed", "transformers", "accelerate")), 8, 4)
        by_topic = lint(config, target)
        monkeypatch.setattr(run, "rules_for", every_rule_for)
        assert lint(config, target) == by_topic, config
        monkeypatch.undo()


def test_a_rule_says_in_its_text_what_it_is_about() -> None:
    # The text is read before the rule is imported; what the decorator was given is compared with it.
    from dsgen.lint.rule import _headers

    told = {module: about for kind in ("deepspeed", "python") for module, about in _headers(kind)}
    for rule in every_rule():
        assert told.get(rule.check.__module__, rule.about) == rule.about, rule.code


def test_a_plain_file_loads_few_rules() -> None:
    code = (
        "import sys; from dsgen.lint.kinds import KINDS; from dsgen.lint.run import lint_bytes; "
        "from dsgen.lint.target import make_target; "
        """lint_bytes("x", b'{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', KINDS[0], make_target()); """
        "print(sum(name.startswith('dsgen.lint.rules.deepspeed.') for name in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        env=environment(),
    )
    assert int(ran.stdout) < len(rules_for(DEEPSPEED.name)) // 5
