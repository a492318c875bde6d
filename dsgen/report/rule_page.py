"""A lint rule's page, from its docstring."""

import re
from typing import Any

from dsgen.lint.rule import Rule

_FENCE = re.compile(r"^```(?P<language>\w+) (?P<kind>bad|good|fixed)(?P<flags>[^\n]*)$", re.MULTILINE)
_SAYS = {"bad": "Found", "fixed": "Fixed", "good": "Right"}


def rule_text(rule: Rule) -> str:
    """The page as Markdown: code and name, what it finds and why, examples, where the claim can be checked."""
    bounds = [f"from {rule.since}" if rule.since else "", f"before {rule.until}" if rule.until else ""]
    versions = " ".join(filter(None, bounds))
    head = f"# {rule.code} {rule.name}" + (f" (DeepSpeed {versions})" if versions else "")
    return f"{head}\n\n{_FENCE.sub(_shown, rule.text)}\n\nSource: {rule.source}"


def _shown(fence: re.Match[str]) -> str:
    # ``also=`` is for the tests: other findings that the example cannot do without.
    flags = " ".join(word for word in fence["flags"].split() if not word.startswith("also="))
    return f"{_SAYS[fence['kind']]}{f', with {flags}' if flags else ''}:\n\n```{fence['language']}"


def rule_json(rule: Rule) -> dict[str, Any]:
    """The page for programs."""
    return {
        "code": rule.code,
        "rule": rule.name,
        "kinds": list(rule.kinds),
        "title": rule.title,
        "page": rule_text(rule),
        "since": rule.since,
        "until": rule.until,
        "source": rule.source,
    }
