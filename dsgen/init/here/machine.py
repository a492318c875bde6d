"""The machine as files and commands show it; a test puts its own in their place."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 20.0
"""Seconds that a command may take: nvidia-smi wakes every card first."""

Run = Callable[[Sequence[str]], str | None]


def run(command: Sequence[str]) -> str | None:
    """What a command prints; None where it is not there or fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class Machine:
    """Where to look."""

    root: Path = Path("/")
    run: Run = run
    shared: Callable[[str], tuple[int, int] | None] | None = None
    """Bytes in all and free of the file system at a path; None: asked of the system."""

    def read(self, path: str) -> str | None:
        """A small file; None where it is not there or closed to us."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def names(self, folder: str) -> list[str]:
        """What lies in a folder."""
        try:
            return sorted(path.name for path in (self.root / folder.lstrip("/")).iterdir())
        except OSError:
            return []

    def space(self, path: str) -> tuple[int, int] | None:
        """Bytes in all, and free for us, of the file system at a path."""
        if self.shared is not None:
            return self.shared(path)
        import os

        try:
            stat = os.statvfs(path)
        except OSError:
            return None
        return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
