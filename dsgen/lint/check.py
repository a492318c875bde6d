"""One file from its bytes to the findings that count, cured where that was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dsgen.lint.files import Source
from dsgen.lint.finding import Finding
from dsgen.lint.project import target_of_file
from dsgen.lint.run import lint_bytes
from dsgen.lint.settings import Settings, settings_of

Fixes = Literal["none", "safe", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for, for all files alike."""

    flags: Mapping[str, Any]
    """The target as far as flags state it."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fixes: Fixes = "none"
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """One file after its check."""

    source: Source
    findings: list[Finding]
    """Those that count, in the file as it is after the fixes."""
    data: bytes
    """The file after the fixes."""
    fixed: int = 0
    """How many of those that counted were cured."""

    def without_advice(self) -> "Checked":
        """Without what is shown on request only."""
        return replace(self, findings=[finding for finding in self.findings if finding.severity != "info"])

    @property
    def text(self) -> str:
        """The file after the fixes, as people read it."""
        return self.data.decode(self.source.kind.encoding(self.data) if self.fixed else "utf-8", errors="replace")


def check(source: Source, request: Request) -> Checked:
    """Lints one file, and cures it in memory."""
    settings = settings_for(source.name, request)
    target = target_of_file(source.name, request.flags, settings, isolated=request.isolated)

    def lint(data: bytes) -> list[Finding]:
        return lint_bytes(source.name, data, source.kind, target)

    counting = replace(
        settings.selection,
        select=request.select or settings.selection.select,
        ignore=(*settings.selection.ignore, *request.ignore),
    )
    every = lint(source.data)
    found = counting.of(every)
    if request.fixes == "none" or not any(_is_wanted(finding, request.fixes) for finding in found):
        return Checked(source, found, source.data)
    from dsgen.lint.fixing import cured  # late: most lints fix nothing

    encoding = source.kind.encoding(source.data)
    data = cured(
        source.data, encoding, lint, lambda finding: _is_wanted(finding, request.fixes) and bool(counting.of([finding]))
    )
    left = counting.of(lint(data))
    return Checked(source, left, data, len(found) - len(left))


def settings_for(name: str, request: Request) -> Settings:
    """What the file's project says."""
    return Settings() if request.isolated else settings_of(Path(name).absolute().parent)


def _is_wanted(finding: Finding, fixes: Fixes) -> bool:
    return finding.fix is not None and bool(finding.fix.edits) and (finding.fix.safe or fixes == "all")
