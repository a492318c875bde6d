"""What every form of a lint's output is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dsgen.lint.finding import Finding


@dataclass(frozen=True, slots=True)
class LintView:
    """What was checked and found."""

    files: Sequence[str]
    """Names of all files that were checked."""
    findings: Sequence[Finding]
    texts: Mapping[str, str] = field(default_factory=dict)
    """Content of the files that have findings."""
    fixed: int | None = None
    """How many findings were cured; None where nobody asked for it."""
    colour: bool = False
    """Whether the output goes to a terminal that shows colours."""
