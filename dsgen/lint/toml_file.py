"""TOML as people wrote it: values from the standard library, and the line on which a key stands for messages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dsgen.errors import InputError, Place

_HEADER = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+")
_AT = re.compile(r"(?P<message>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")


@dataclass(frozen=True)
class TomlFile:
    """One file."""

    name: str
    text: str

    @cached_property
    def values(self) -> dict[str, Any]:
        """What stands in it.

        Raises:
            InputError: it is not TOML.
        """
        import tomllib  # late: most lints meet no such file

        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            found = _AT.fullmatch(str(error))
            message = found["message"] if found else str(error)
            raise InputError.at(f"is not TOML: {message}", self._place_of(found)) from None
        except RecursionError:
            raise InputError.at("is not TOML that can be read: nested too deeply", Place(self.name)) from None
        except ValueError:
            # A number of more digits than Python converts; the library does not say where.
            raise InputError.at(
                "is not TOML that can be read: a number has too many digits", Place(self.name)
            ) from None

    def _place_of(self, found: re.Match[str] | None) -> Place:
        if found and found["line"]:
            return Place(self.name, int(found["line"]), int(found["column"]))
        # It ends too early.
        return Place(self.name, self.text.count("\n") + 1, len(self.text) - self.text.rfind("\n"))

    def table(self, *keys: str) -> Any:
        """The value at a path of keys; None where there is none."""
        value: Any = self.values
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def place(self, keys: Sequence[str]) -> Place:
        """Where the last of the keys stands, as near as can be told: at it, or at the header of its table."""
        header: tuple[str, ...] = ()
        found = Place(self.name)
        for number, line in enumerate(self.text.split("\n"), start=1):
            opened = _HEADER.match(line)
            if opened:
                header = tuple(part.strip().strip("\"'") for part in opened[1].split("."))
                if header == tuple(keys[: len(header)]):
                    found = Place(self.name, number, line.index("[") + 1)
                continue
            rest = keys[len(header) :]
            if rest and header == tuple(keys[: len(header)]):
                for depth in range(len(rest), 0, -1):
                    written = r"\s*\.\s*".join(f"[\"']?{re.escape(key)}[\"']?" for key in rest[:depth])
                    at = re.match(rf"\s*({written})\s*=", line)
                    if at:
                        return Place(self.name, number, at.start(1) + 1)
        return found
