"""Runs the rules over files: bytes to findings."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dsgen.lint import versions
from dsgen.lint.finding import Elsewhere, Finding, Related
from dsgen.lint.kinds import Held, Kind, Readable
from dsgen.lint.mark import Mark
from dsgen.lint.rule import Rule, rules_for
from dsgen.lint.target import LintTarget


def lint_bytes(name: str, data: bytes, kind: Kind, target: LintTarget) -> list[Finding]:
    """Every finding in one file that no comment hides, in the order of its text."""
    file = kind.read(data, target, name)
    rules = rules_for(kind.name, file.topics(target))
    found = _unique(finding for rule in rules if not rule.last for finding in _run(rule, name, file, target))
    for held in kind.further_configs(file, target):
        found |= _unique(_in_held(held, name))
    # Each comment is asked about each finding: it notes which ones it hides.
    shown = [f for f in found.values() if not [ignore for ignore in file.ignores if ignore.hides(f)]]
    shown += [finding for rule in rules if rule.last for finding in _run(rule, name, file, target)]
    return sorted(shown, key=lambda finding: (finding.range, finding.code))


def _unique(findings: Iterable[Finding]) -> dict[object, Finding]:
    return {_key(finding): finding for finding in findings}


def config_findings(config: Readable, target: LintTarget, name: str = "") -> list[Finding]:
    """Every finding in one DeepSpeed config that was read already, wherever it stands; comments hide none."""
    rules = [rule for rule in rules_for("deepspeed", config.topics(target)) if not rule.last]
    return list(_unique(finding for rule in rules for finding in _run(rule, name, config, target)).values())


def _in_held(held: Held, name: str) -> Iterator[Finding]:
    """The findings in a config within another file, less those that hang on what is unknown there."""
    rules = [rule for rule in rules_for(held.kind, held.config.topics(held.target)) if not rule.last]
    found = [finding for rule in rules for finding in _run(rule, name, held.config, held.target)]
    if held.left_open is None:
        yield from found
        return
    anyone = replace(held.target, loaded_by=None)
    certain = {(finding.code, finding.range) for rule in rules for finding in _run(rule, name, held.left_open, anyone)}
    yield from (finding for finding in found if (finding.code, finding.range) in certain)


def _run(rule: Rule, name: str, file: Readable, target: LintTarget) -> Iterator[Finding]:
    holds = versions.at_least(target.deepspeed, rule.since) and versions.before(target.deepspeed, rule.until)
    if (file.is_read or rule.unread) and (holds or "deepspeed" not in rule.kinds):
        for mark in rule.check(file, target):
            yield _finding(rule, mark, name, file)


def _finding(rule: Rule, mark: Mark, name: str, file: Readable) -> Finding:
    return Finding(
        file=name,
        range=file.locate(mark.where, mark.on),
        code=rule.code,
        rule=rule.name,
        severity=mark.severity,
        message=mark.message,
        help=mark.help,
        path=file.path_of(mark.where),
        related=tuple(_related(where, message, file) for where, message in mark.related),
        fix=file.fix(mark.fix) if mark.fix else None,
    )


def _related(where: Any, message: str, file: Readable) -> Related:
    if isinstance(where, Elsewhere):
        return Related(where.range, message, where.file)
    return Related(file.locate(where, "key"), message)


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.range, finding.message
