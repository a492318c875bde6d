"""Files that lie beside what is linted: read if they can be, never a reason to fail."""

import os
from pathlib import Path

# A lock file of a large project has some megabytes.
_MOST_BYTES = 16 << 20


def read_beside(file: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Its content; nothing where it is no ordinary file (a pipe would wait for ever), too large, or not readable."""
    try:
        if not file.is_file() or file.stat().st_size > most_bytes:
            return b""
        return file.read_bytes()
    except OSError:
        return b""


def names_in(folder: str | Path) -> list[str]:
    """What lies in a folder, sorted; nothing where it cannot be looked into."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []
