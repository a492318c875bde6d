"""Formats: one folder each, with ``write`` (plan to files) and later ``read`` (files to wishes).

A folder here is a format; its name is what ``target.format`` says.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).resolve().parent


def format_names() -> list[str]:
    """Every format that can be written."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/write.py"))


def writer(name: str) -> ModuleType:
    """The module of that format with ``write(plan, shapes, training, target, ...) -> Written``."""
    return import_module(f"dsgen.formats.{name}.write")
