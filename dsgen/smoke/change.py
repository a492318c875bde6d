"""What a run had to change of what it was given; nothing is changed that is not listed."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that had to differ for this machine or this tiny model. None: the key is absent."""

    key: str
    before: Any
    after: Any
    why: str
