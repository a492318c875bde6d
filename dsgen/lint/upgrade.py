"""What another DeepSpeed version makes of a config, and the edits under which the training stays as it was."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dsgen.lint.config_file import ConfigFile, read_config
from dsgen.lint.finding import Finding
from dsgen.lint.fixing import fixed
from dsgen.lint.in_force import Keys, Value, in_force
from dsgen.lint.mark import Change
from dsgen.lint.run import config_findings
from dsgen.lint.target import LintTarget
from dsgen.lint.upgrade_differences import Difference, differences_of


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A config under two versions."""

    file: ConfigFile
    differences: tuple[Difference, ...]
    edited: str
    """The text with every edit that keeps something."""
    errors: tuple[Finding, ...]
    """What the linter then calls an error for the new version, and did not for the old one."""


Read = Callable[[str], ConfigFile | None]
"""Reads a config again from an edited text; None where it is none any more."""


@dataclass(frozen=True, slots=True)
class _Versions:
    """What is compared, and what of it is told."""

    old: LintTarget
    new: LintTarget
    unknown: frozenset[Keys]
    """Keys whose values code computes: nothing of them is told."""

    def differences(self, was: tuple[Value, ...], file: ConfigFile) -> tuple[Difference, ...]:
        found = differences_of(was, in_force(file, self.new), self.old)
        return tuple(one for one in found if not any(one.path[: len(keys)] == keys for keys in self.unknown))


def upgrade(
    file: ConfigFile,
    old: LintTarget,
    new: LintTarget,
    *,
    left_open: ConfigFile | None = None,
    read: Read | None = None,
) -> Upgrade:
    """Compares, and edits until nothing more can be kept.

    An edit stays only if what the new version then acts on is nearer to what the old one acted on.
    ``left_open`` has the keys whose values ``file`` lacks, for nobody can tell them.
    """
    versions = _Versions(old, new, frozenset(_unknown(left_open, file) if left_open else ()))
    was = in_force(file, old)
    found = versions.differences(was, file)
    current, left = file, found
    # Each edit takes a difference away, so this ends.
    while nearer := _nearer(current, left, was, versions, read or _read_as(new)):
        current, left = nearer
    remaining = {_key(one) for one in left}
    kept = tuple(replace(one, kept=_key(one) not in remaining) for one in found)
    return Upgrade(file, kept, current.document.text, _new_errors(file, current, found, old, new))


def _read_as(target: LintTarget) -> Read:
    def read(text: str) -> ConfigFile | None:
        return read_config(text.encode("utf-8", "surrogatepass"), target.loaded_by)

    return read


def _unknown(left_open: ConfigFile, known: ConfigFile, path: Keys = ()) -> Iterator[Keys]:
    for key, value in left_open.section(*path).items():
        if not known.has(*path, key):
            yield (*path, key)
        elif isinstance(value, dict):
            yield from _unknown(left_open, known, (*path, key))


def _nearer(
    file: ConfigFile, left: tuple[Difference, ...], was: tuple[Value, ...], versions: _Versions, read: Read
) -> tuple[ConfigFile, tuple[Difference, ...]] | None:
    """The file after one edit that takes differences away and brings none, and what is left then."""
    for difference in left:
        attempt = _applied(file, difference.change, read)
        if attempt is not None:
            after = versions.differences(was, attempt)
            if {_key(one) for one in after} < {_key(one) for one in left}:
                return attempt, after
    return None


def _new_errors(
    file: ConfigFile, edited: ConfigFile, told: tuple[Difference, ...], old: LintTarget, new: LintTarget
) -> tuple[Finding, ...]:
    """Errors of keys together, which no single key tells."""
    known = {(finding.code, finding.path) for finding in _errors(file, old)}
    paths = {file.path_of(difference.path) for difference in told}
    found = _errors(edited, new)
    return tuple(one for one in found if (one.code, one.path) not in known and one.path not in paths)


def _errors(file: ConfigFile, target: LintTarget) -> list[Finding]:
    # Comments in code are its reader's business.
    comments = file.ignores if file.dialect != "python" else ()
    found = [finding for finding in config_findings(file, target) if finding.severity == "error"]
    return [finding for finding in found if not any(comment.hides(finding) for comment in comments)]


def _key(difference: Difference) -> tuple[Keys, bool]:
    return difference.path, difference.after.startswith("refused")


def _applied(file: ConfigFile, change: Change | None, read: Read) -> ConfigFile | None:
    if change is None:
        return None
    fix = file.fix(_with_sections(change, file))
    if fix is None:
        return None
    text = fixed(file.document.text, [fix])
    edited = read(text)
    return edited if edited is not None and edited.is_read and text != file.document.text else None


def _with_sections(change: Change, file: ConfigFile) -> Change:
    """An insertion that brings the sections along which the file lacks."""
    step = change.steps[0]
    if step.action != "insert":
        return change
    path, value = step.path, step.value
    while path[:-1] and not file.has(*path[:-1]):
        path, value = path[:-1], {path[-1]: value}
    return replace(change, steps=(replace(step, path=path, value=value),))
