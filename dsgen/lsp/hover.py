"""What stands under the cursor: a key with its facts, what its value comes to, and what was found there."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsgen.lint import effective
from dsgen.lint.batch_in_force import with_batch_sizes
from dsgen.lint.finding import Finding
from dsgen.lint.in_force import Value, in_force
from dsgen.lint.rule import known_rules
from dsgen.lint.target import LintTarget
from dsgen.lsp.configs import Config, configs, key_at
from dsgen.lsp.keys import said, section_at
from dsgen.lsp.text import Text

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown, in Markdown, and what it is about."""

    markdown: str
    start: int
    end: int


def hover(text: Text, offset: int, target: LintTarget, findings: Iterable[Finding] = ()) -> Shown | None:
    """What is known of the place; None where there is nothing to say."""
    stretch: tuple[int, int] | None = None
    parts: list[str] = []
    for config in configs(text, target):
        path = key_at(config, offset)
        if path:
            keys = tuple(map(str, path))
            parts.append("\n\n".join(_key(config, keys)))
            stretch = _stretch(config, path, offset)
            break
    for finding in findings:
        start, end = text.positions.stretch(finding.range)
        if start <= offset < end:
            parts.append(_rule(finding))
            stretch = stretch or (start, end)
    return Shown("\n\n---\n\n".join(parts), *stretch) if stretch else None


def _stretch(config: Config, path: tuple[str | int, ...], offset: int) -> tuple[int, int]:
    member = config.shown.document.member(path)
    assert member is not None, "the key was found there"
    if member.key_start <= offset < member.key_end:
        return member.key_start, member.key_end
    return member.node.start, member.node.end


def _key(config: Config, keys: tuple[str, ...]) -> Iterator[str]:
    yield f"**{_escaped('.'.join(keys))}**"
    section = section_at(config.file.section(), keys[:-1], config.target)
    schema = section.known.get(keys[-1]) if section else None
    if schema is not None:
        yield said(schema, config.target, effective.stage(config.file, config.target))
    if not config.file.has(*keys) and config.shown.has(*keys) and config.is_exact:
        yield "Code computes its value."
    elif config.is_exact:
        values = with_batch_sizes(in_force(config.file, config.target), config.file, config.target)
        value = next((one for one in values if one.path == keys), None)
        if value is not None:
            yield _in_force(value, config)
    elif schema is None:
        yield "No key that is known here."


def _in_force(value: Value, config: Config) -> str:
    library, why = config.target.library, f": {_escaped(value.why)}" if value.why else ""
    if value.fate == "acts" and value.origin == "loader":
        return f"**In effect:** what the loader fills in{why}"
    if value.fate == "acts":
        return f"**In effect** with {library}: `{_short(value.value)}`{why}"
    return f"**{value.fate.capitalize()}** by {library}{why}"


def _short(value: object) -> str:
    text = json.dumps(value)
    return (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...").replace("`", "'")


def _rule(finding: Finding) -> str:
    """The finding with the words of its rule's page."""
    head = f"**{finding.code} {finding.rule}**: {_escaped(finding.message)}"
    help = f"\n\n{_escaped(finding.help)}" if finding.help else ""
    rule = known_rules().get(finding.code)
    page = rule.text.partition("```")[0].strip() if rule else ""
    return f"{head}{help}\n\n{page}\n\n`dsgen rule {finding.code}` has examples."


def _escaped(text: str) -> str:
    """Text of a file: shown as it is, never as a link or an image of ours."""
    shown = "".join(f"\\{char}" if char in "\\`*_{}[]<>()#!|" else char for char in text)
    return shown if len(shown) <= 2 * _LONGEST else f"{shown[: 2 * _LONGEST]}..."
