"""Which part of a large set today's everyday tests take: another one with every commit."""

import subprocess
from collections.abc import Sequence
from datetime import date
from typing import TypeVar

from smoke_helpers import ROOT

Item = TypeVar("Item")


def turn() -> int:
    """A number that changes with the commit; with the day where there is no git."""
    found = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=30, check=False
    )
    return int(found.stdout[:8], 16) if found.returncode == 0 else date.today().toordinal()


def rotated(items: Sequence[Item], take: int, salt: int = 0) -> list[Item]:
    """``take`` neighbours in a ring; ``salt`` tells sets apart that are sampled side by side."""
    first = (turn() + salt * 7) % len(items)
    return [items[(first + step) % len(items)] for step in range(min(take, len(items)))]
