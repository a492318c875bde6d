"""The findings in one document: those of ``dsgen lint`` for its text as it stands in the editor."""

from dataclasses import dataclass, replace

from dsgen.errors import InputError
from dsgen.lint.baseline import read_baseline
from dsgen.lint.check import Fixes, Request, check, settings_for
from dsgen.lint.finding import Finding
from dsgen.lint.project import target_of_file
from dsgen.lint.target import LintTarget, make_target
from dsgen.lsp.text import Text

NO_FLAGS = Request(flags={})


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was found in a document at one version."""

    text: Text
    findings: tuple[Finding, ...] = ()
    note: str | None = None
    """Why it was not looked at, where somebody may wonder."""
    problem: str | None = None
    """What of the project cannot be read, so that it was not judged."""


def analyse(text: Text, *, was_ours: bool = False) -> Analysis:
    """Looks at a document, if it is one of ours; one that was stays one while it is broken."""
    if text.is_too_large:
        assert text.kind is not None, "its bound is the kind's"
        return Analysis(text, note=f"{text.name} is larger than {text.kind.most_bytes >> 10} KiB: not looked at")
    if not text.is_ours and not (was_ours and text.kind is not None):
        return Analysis(text)
    try:
        done = check(text.source, NO_FLAGS)
        baseline = settings_for(text.name, NO_FLAGS).baseline
        found = read_baseline(baseline).new(done.findings, text.text) if baseline else done.findings
    except InputError as error:
        return Analysis(text, problem="; ".join(str(problem) for problem in error.problems))
    return Analysis(text, tuple(found))


def cured(text: Text, fixes: Fixes) -> str:
    """The text after all fixes of a kind, as ``dsgen lint --fix`` leaves it.

    Raises:
        InputError: the project's settings cannot be read.
    """
    done = check(text.source, replace(NO_FLAGS, fixes=fixes))
    return done.text if done.fixed else text.text


def target_of(text: Text) -> LintTarget:
    """What the document is meant for, by its project; what cannot be read says nothing."""
    try:
        return target_of_file(text.name, {}, settings_for(text.name, NO_FLAGS))
    except InputError:
        return make_target()
