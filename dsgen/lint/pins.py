"""Which DeepSpeed a project uses: what its files pin, else what is installed. A range is no version."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dsgen.errors import InputError
from dsgen.lint import versions
from dsgen.lint.beside import read_beside

_RELEASE = r"(\d+(?:\.\d+)+[\w.+-]*)(?![\w.+*-])"
_LOCKED = re.compile(rf'^name = "deepspeed"\r?\nversion = "{_RELEASE}"', re.MULTILINE)
# PEP 508 in quotes; or Poetry's own table, where a bare version means exactly that one.
_IN_PYPROJECT = re.compile(
    rf"""^[^#\n]*?(?:["']deepspeed(?:\[[^\]]*\])?\s*={{2,3}}\s*|^\s*deepspeed\s*=\s*["']={{0,2}}\s*){_RELEASE}""",
    re.MULTILINE,
)
_IN_REQUIREMENTS = re.compile(rf"^\s*deepspeed(?:\[[^\]]*\])?\s*={{2,3}}\s*{_RELEASE}", re.MULTILINE | re.IGNORECASE)
_IN_CONDA = re.compile(rf"""^\s*-\s*["']?(?:[\w-]+::)?deepspeed(?:\[[^\]]*\])?\s*={{1,3}}\s*{_RELEASE}""", re.MULTILINE)

# What is nearer to what runs comes first: a lock file says what its project file leaves open.
_FILES = (
    (_LOCKED, ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")),
    (_IN_PYPROJECT, ("pyproject.toml",)),
    (_IN_REQUIREMENTS, ("requirements*.txt", "requirements/*.txt", "constraints*.txt")),
    (_IN_CONDA, ("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml")),
)


def deepspeed_of(folder: Path) -> tuple[str, str] | None:
    """Version, and who says so; None where nobody does, or where files that count alike differ."""
    for place in _up_to_the_root(folder):
        for pattern, names in _FILES:
            pins = {version: file for name in names for file, version in _pins(place, name, pattern)}
            if len(pins) > 1:
                return None
            for version, file in pins.items():
                return version, file
    installed = _installed()
    return (installed, "installed") if installed else None


def _up_to_the_root(folder: Path) -> Iterator[Path]:
    """The folder and those above it, up to the one that holds the repository."""
    for place in (folder, *folder.parents):
        yield place
        if (place / ".git").exists():
            return


def _pins(folder: Path, name: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.glob(name)) if "*" in name else [folder / name]:
        yield from ((file.name, version) for version in _found(file, pattern))


@cache
def _found(file: Path, pattern: re.Pattern[str]) -> tuple[str, ...]:
    data = read_beside(file)
    found = pattern.findall(data.decode(errors="replace")) if b"eepspeed" in data.lower() else []
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
        for found in sorted(Path(entry or ".").glob("deepspeed-*.dist-info")):
            version = found.name.removeprefix("deepspeed-").removesuffix(".dist-info")
            if _is_version(version):
                return version
    return None


def forget_pins() -> None:
    """What was read is read anew."""
    _found.cache_clear()
    _installed.cache_clear()
