"""One Jinja2 environment for everything that dsgen writes.

A value reaches a file only through a filter that quotes it for the file's language: ``tojson`` for
JSON, ``py`` for Python, ``sh`` for shell, ``text`` for comments, ``identifier`` for names. The
environment refuses to print anything else, so that a template cannot forget it.
"""

import json
import keyword
import math
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dsgen.data import templates_dir
from dsgen.errors import InputError, Place


class Quoted(str):
    """Text that came through a filter and may be printed."""

    __slots__ = ()


def to_json(value: object, level: int = 0) -> Quoted:
    """JSON, two blanks per level, lists of scalars on one line; ASCII only, no NaN, no Infinity."""
    return Quoted(_json(value, level))


def _json(value: object, level: int) -> str:
    _defined(value)
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, allow_nan=False)
    pad = "  " * (level + 1)
    lines = [f"{pad}{json.dumps(str(key))}: {_json(item, level + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + "  " * level + "}"


def to_python(value: object) -> Quoted:
    """A Python literal in ASCII, as ``ruff format`` writes it: strings in double quotes."""
    return Quoted(_python(value))


def _python(value: object) -> str:
    _defined(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_python(key)}: {_python(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_python, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_python, value)) + (",)" if len(value) == 1 else ")")
    if isinstance(value, str):
        return _python_string(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value!r} has no Python literal")
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    raise TypeError(f"{value!r} has no Python literal")


def _python_string(text: str) -> str:
    literal = ascii(text)
    if literal.startswith("'") and '"' not in text:
        # No quote inside either way: only the outer ones change.
        return f'"{literal[1:-1]}"'
    return literal


def to_shell(value: object) -> Quoted:
    """One word of a POSIX shell, whatever stands in it."""
    word = str(value)
    if "\0" in word:
        raise ValueError("a shell word cannot hold a NUL")
    # A lone surrogate cannot be encoded at all; said here rather than at the writing of the file.
    word.encode("utf-8")
    return Quoted(shlex.quote(word))


def to_text(value: object) -> Quoted:
    """Words of a comment or docstring: one line, printable ASCII, without quotes, backslashes and braces."""
    line = " ".join(str(value).split())
    return Quoted(re.sub(r"[^ !#$%&'()+,\-./0-9:;<=>?@A-Z\[\]^_a-z|~]", "?", line))


def to_identifier(value: object) -> Quoted:
    """A dotted Python name (``package.module.Class``), checked."""
    name = str(value)
    parts = name.split(".")
    if not all(part.isascii() and part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise InputError.at(f"{name!r} is not a Python name", help="write a name such as package.module.Class")
    return Quoted(name)


def _defined(value: object) -> None:
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises, naming the variable


def _only_quoted(value: object) -> object:
    _defined(value)
    if value is None or isinstance(value, Quoted):
        return "" if value is None else value
    raise jinja2.TemplateRuntimeError(
        f"{value!r} would be printed as it is; send it through tojson, py, sh, text or identifier"
    )


@cache
def environment(templates: Path | None = None) -> jinja2.Environment:
    """The environment over the shipped templates, or over a user's folder first and the shipped ones behind it."""
    if templates is not None and not templates.is_dir():
        raise InputError.at("is not a folder of templates", Place(str(templates)))
    folders = [templates_dir()] if templates is None else [templates, templates_dir()]
    # Sandboxed: a template that came with somebody's project may print values and do nothing else.
    env = ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # nothing here is HTML; the filters quote for each file's own language
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_only_quoted,
    )
    env.filters = {
        name: env.filters[name] for name in ("length", "list", "sort", "first", "last", "join", "min", "max", "default")
    }
    env.filters |= {
        "tojson": to_json,
        "py": to_python,
        "sh": to_shell,
        "text": to_text,
        "identifier": to_identifier,
    }
    return env


# What a template's own expressions can end in: 1 / 0, a list index, a macro that calls itself, range(10**9).
_FAILURES = (jinja2.TemplateError, ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def render(name: str, values: Mapping[str, Any], templates: Path | None = None) -> str:
    """The text of one template; what is wrong with it is said with its file and line."""
    try:
        return environment(templates).get_template(name).render(values)
    except jinja2.TemplateSyntaxError as error:
        place = Place(error.filename or name, error.lineno)
        raise InputError.at(f"the template is malformed: {error.message}", place) from error
    except jinja2.TemplateNotFound as error:
        raise InputError.at(f"there is no template {error.name!r}") from error
    except UnicodeDecodeError as error:
        raise InputError.at("the template is not UTF-8", Place(str(templates or name))) from error
    except _FAILURES as error:
        said = str(error) or type(error).__name__
        raise InputError.at(f"the template failed: {said}", _line_of(error, name)) from error


def _line_of(error: Exception, name: str) -> Place:
    """The deepest template line in the traceback: Jinja rewrites its frames to the template's own."""
    place, frame = Place(name), error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if file.endswith(".j2"):
            place = Place(file, frame.tb_lineno)
        frame = frame.tb_next
    return place
