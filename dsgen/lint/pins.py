"""Which DeepSpeed a project uses: what its files pin, else what is installed. A range is no version."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dsgen.errors import InputError
from dsgen.lint import versions
from dsgen.lint.beside import names_in, read_beside
from dsgen.lint.target import INSTALLED

# Patterns are compiled where a file speaks of DeepSpeed: a start is too short for those that nobody needs.
_RELEASE = r"(\d+(?:\.\d+)+[\w.+-]*)(?![\w.+*-])"
_LOCKED = rf'(?m)^name = "deepspeed"\r?\nversion = "{_RELEASE}"'
# PEP 508 in quotes; or Poetry's own table, where a bare version means exactly that one.
_IN_PYPROJECT = (
    rf"""(?m)^[^#\n]*?(?:["']deepspeed(?:\[[^\]]*\])?\s*={{2,3}}\s*|^\s*deepspeed\s*=\s*["']={{0,2}}\s*){_RELEASE}"""
)
_IN_REQUIREMENTS = rf"(?mi)^\s*deepspeed(?:\[[^\]]*\])?\s*={{2,3}}\s*{_RELEASE}"
_IN_CONDA = rf"""(?m)^\s*-\s*["']?(?:[\w-]+::)?deepspeed(?:\[[^\]]*\])?\s*={{1,3}}\s*{_RELEASE}"""

# What is nearer to what runs comes first: a lock file says what its project file leaves open.
# Names are (how they start, how they end).
_FILES = (
    (_LOCKED, (("uv.lock", ""), ("poetry.lock", ""), ("pdm.lock", ""), ("pylock.toml", ""))),
    (_IN_PYPROJECT, (("pyproject.toml", ""),)),
    (_IN_REQUIREMENTS, (("requirements", ".txt"), ("constraints", ".txt"))),
    (_IN_CONDA, (("environment", ".yml"), ("environment", ".yaml"), ("conda", ".yml"), ("conda", ".yaml"))),
)
_REQUIREMENTS_FOLDER = "requirements"


def deepspeed_of(folder: Path) -> tuple[str, str] | None:
    """Version, and who says so; None where nobody does, or where files that count alike differ."""
    for place in _up_to_the_root(folder):
        for pattern, files in _files(place):
            pins = {version: file.name for file in files for version in _found(file, pattern)}
            if len(pins) > 1:
                return None
            for version, name in pins.items():
                return version, name
    installed = _installed()
    return (installed, INSTALLED) if installed else None


def _up_to_the_root(folder: Path) -> Iterator[Path]:
    """The folder and those above it, up to the one that holds the repository."""
    for place in (folder, *folder.parents):
        yield place
        if (place / ".git").exists():
            return


@cache
def _files(folder: Path) -> tuple[tuple[str, tuple[Path, ...]], ...]:
    """The files in a folder that may pin, told by their names, by the pattern that finds the version."""
    names = names_in(folder)
    if _REQUIREMENTS_FOLDER in names:
        names += [f"{_REQUIREMENTS_FOLDER}/{name}" for name in names_in(folder / _REQUIREMENTS_FOLDER)]
    return tuple(
        (pattern, tuple(folder / name for name in names for start, end in wanted if _fits(name, start, end)))
        for pattern, wanted in _FILES
    )


def _fits(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)


@cache
def _found(file: Path, pattern: str) -> tuple[str, ...]:
    data = read_beside(file)
    found = re.findall(pattern, data.decode(errors="replace")) if b"eepspeed" in data.lower() else []
    return tuple(version for version in found if _is_version(version))


def _is_version(text: str) -> bool:
    try:
        versions.parse(text)
    except InputError:
        return False
    return True


@cache
def _installed() -> str | None:
    """From the name of its metadata's folder: reading more, or importing it, takes seconds that nobody needs."""
    for entry in sys.path:
        for name in names_in(entry or "."):
            if not _fits(name, "deepspeed-", ".dist-info"):
                continue
            version = name.removeprefix("deepspeed-").removesuffix(".dist-info")
            if _is_version(version):
                return version
    return None


def forget_pins() -> None:
    """What was read is read anew."""
    _files.cache_clear()
    _found.cache_clear()
    _installed.cache_clear()
