"""What a completion inserts: a key or value as the language at the cursor writes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dsgen.lint import schema as sch
from dsgen.lsp.outline import Cursor

# Words that YAML 1.1 reads as something else than text.
_NO_TEXT = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
# Whole numbers between bounds this close are a choice.
_FEW = 10

Form = Literal["json", "python", "yaml"]
Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One thing that may be written."""

    label: str
    what: Literal["section", "key", "value"]
    start: int
    end: int
    """What it replaces."""
    text: str
    snippet: str | None = None
    """The same with places to fill in."""
    detail: str = ""
    markdown: str = ""
    rank: int = 0
    """Lower ones are shown first."""
    typed: str = ""
    """What the user's own beginning is held against."""
    beside: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Style:
    """How things are written there."""

    form: Form
    is_bare: bool = False
    """Keys stand without quotes."""

    def value(self, value: Any) -> str:
        """A value as the language has it."""
        if self.form == "python":
            return repr(value)
        if self.form == "yaml" and isinstance(value, str) and value.isidentifier() and value.lower() not in _NO_TEXT:
            return value
        return json.dumps(value)

    def key(self, key: str, quote: str) -> str:
        """A key as the language has it."""
        if not quote and (self.form == "yaml" or self.is_bare):
            return key
        mark = quote if self.form == "python" and quote else '"'
        return f"{mark}{key}{mark}"


def key_offer(
    key: str, words: Mapping[str, Any], cursor: Cursor, style: Style, *, detail: str, markdown: str, rank: int
) -> Offer:
    """An offer of a key, with its colon and a place for its value."""
    written = style.key(key, cursor.quote)
    is_section = "object" in sch.types(words)
    snippet = None
    if not cursor.has_colon:
        end = "," if cursor.more_follows else ""
        snippet = f"{_plain(written)}:{_place(words, style)}{end}"
        written += ":" if style.form == "yaml" and is_section else ": "
    return Offer(
        label=key,
        what="section" if is_section else "key",
        start=cursor.start,
        end=cursor.end,
        text=written,
        snippet=snippet,
        detail=detail,
        markdown=markdown,
        rank=rank,
        typed=f"{cursor.quote}{key}",
        beside=((cursor.comma_at, cursor.comma_at, ","),) if cursor.comma_at is not None else (),
    )


def value_offer(value: Any, cursor: Cursor, style: Style, *, detail: str = "", rank: int = 0) -> Offer:
    """An offer of a value."""
    written = style.value(value)
    return Offer(
        label=value if isinstance(value, str) else written,
        what="value",
        start=cursor.start,
        end=cursor.end,
        text=written,
        detail=detail,
        rank=rank,
        typed=f"{cursor.quote}{value if isinstance(value, str) else written}",
    )


def _place(words: Mapping[str, Any], style: Style) -> str:
    """Where the value goes, with what is likely to stand there."""
    types, default = sch.types(words), words.get("default")
    if "object" in types:
        return "\n  $1" if style.form == "yaml" else " {$1}"
    if "enum" in words:
        return f" {_choice(words['enum'], default, style)}"
    if "boolean" in types:
        return f" {_choice([True, False], default, style)}"
    if few_numbers(words):
        return f" {_choice(few_numbers(words), None, style)}"
    if isinstance(default, int | float | list):
        return f" ${{1:{_plain(style.value(default))}}}"
    if types and set(types) <= {"array", "null"}:
        return " [$1]"
    if types and set(types) <= {"string", "null"} and style.form != "yaml":
        return ' "$1"'
    return " $1"


def few_numbers(words: Mapping[str, Any]) -> list[int]:
    """The whole numbers that a key takes, where they are few."""
    least, most = words.get("minimum"), words.get("maximum")
    if "integer" not in sch.types(words) or not isinstance(least, int) or not isinstance(most, int):
        return []
    return list(range(least, most + 1)) if most - least < _FEW else []


def _choice(values: list[Any], default: Any, style: Style) -> str:
    # What is the default is what one gets without the key: it comes last.
    ordered = sorted((value for value in values if value is not None), key=lambda value: value == default)
    shown = (_plain(style.value(value)).replace(",", "\\,").replace("|", "\\|") for value in ordered)
    return f"${{1|{','.join(shown)}|}}"


def _plain(text: str) -> str:
    """Text in which a snippet's own signs mean themselves."""
    return text.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")
