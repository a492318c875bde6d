"""Where schemas/ and templates/ lie: beside the package in a checkout, inside it once installed; the schemas, read."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent


@cache
def _root() -> Path:
    # pyproject.toml stands beside the package only in a checkout (or an unpacked sdist);
    # a wheel carries both folders inside the package (hatchling's force-include).
    is_checkout = (_CHECKOUT / "pyproject.toml").is_file() and (_CHECKOUT / "schemas").is_dir()
    return _CHECKOUT if is_checkout else _PACKAGE


def schema_path(name: str) -> Path:
    """Path of ``schemas/<name>.schema.json``."""
    return _root() / "schemas" / f"{name}.schema.json"


@cache
def read_schema(name: str) -> Mapping[str, Any]:
    """The schema of that name as checked in, parsed once in a process, whoever asks."""
    import json  # late: most commands look at no schema

    with open(schema_path(name), encoding="utf-8") as file:
        schema: Mapping[str, Any] = json.load(file)
    return schema


def templates_dir() -> Path:
    """The folder of templates that ships with dsgen."""
    return _root() / "templates"
