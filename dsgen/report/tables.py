"""Columns and shares as text."""

from collections.abc import Iterator, Sequence


def aligned(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Each column as wide as its widest cell, two blanks between them."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def share(value: float | None, *, signed: bool = False) -> str:
    """A share in percent; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:+.1%}" if signed else f"{value:.1%}"
