"""A Hugging Face config.json as typed values, each problem with its place."""

import errno
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsgen.errors import InputError, Place

LARGEST_FILE = 4 * 2**20
"""Bytes. Real ones are a few KiB; label maps make the largest a few hundred."""
LARGEST_SIZE = 10**9
"""Above any width, depth or vocabulary; keeps a slip of the key from running for minutes."""


@dataclass(frozen=True, slots=True)
class Config:
    """The object in the file, and what transformers takes for a key that is absent."""

    file: str
    text: str
    values: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def get(self, key: str) -> Any:
        """The value as it stands, or the default; None where there is neither."""
        return self.values.get(key, self.defaults.get(key))

    def whole(self, key: str) -> int | None:
        """A whole number of at least 1, or None."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_SIZE:
            raise self.problem(key, f"{key} is {_shown(value)}", f"write a whole number from 1 to {LARGEST_SIZE}")
        return value

    def needed(self, key: str) -> int:
        """A whole number of at least 1."""
        value = self.whole(key)
        if value is None:
            raise self.problem(key, f"{key} is missing", "it has no default: write it")
        return value

    def count(self, key: str) -> int:
        """A whole number of at least 0; 0 where it is absent or null."""
        return 0 if self.get(key) in (None, 0) and self.get(key) is not False else self.needed(key)

    def flag(self, key: str) -> bool:
        """True or false; absent or null is false."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.problem(key, f"{key} is {_shown(value)}", "write true or false")
        return bool(value)

    def text_of(self, key: str) -> str | None:
        """A string, or None."""
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise self.problem(key, f"{key} is {_shown(value)}", "write a string")
        return value

    def layer_list(self, key: str) -> list[int]:
        """A list of layer numbers; empty where it is absent or null."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.problem(key, f"{key} is {_shown(value)}", "write a list of layer numbers")
        return value

    def problem(self, key: str, message: str, help: str | None = None) -> InputError:
        """An error where ``key`` stands."""
        error = InputError.at(message, self._place(key), help)
        assert isinstance(error, InputError)
        return error

    def _place(self, key: str) -> Place:
        # json keeps no positions. A key found once in the text is surely the one meant.
        found = list(re.finditer(re.escape(json.dumps(key)) + r"\s*:\s*", self.text))
        return place_at(self.file, self.text, found[0].end()) if len(found) == 1 else Place(self.file)


def read_config(path: Path, place: Place | None = None) -> Config:
    """Reads the file, or the config.json in the folder; ``place`` is where the path was written."""
    file = path / "config.json" if path.is_dir() else path
    text, values = read_object(file, LARGEST_FILE, place, "give a folder with config.json, or that file")
    return Config(str(file), text, values, {})


def read_object(
    file: Path, largest: int, place: Place | None = None, help: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Text and value of a file that holds a JSON object of at most ``largest`` bytes."""
    try:
        with open(file, "rb", opener=regular) as opened:
            raw = opened.read(largest + 1)
    except OSError as error:
        raise InputError.at(f"cannot read {file}: {error.strerror or error}", place, help) from None
    if len(raw) > largest:
        raise InputError.at(f"larger than {largest} bytes: no {file.name} is", Place(str(file)))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError.at("not UTF-8", Place(str(file), line), "save it as UTF-8") from None
    return text, _object(str(file), text)


def regular(path: str, flags: int) -> int:
    """For ``open``: a file's descriptor; a pipe, for which opening would wait, is refused."""
    opened = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "not a file")
    return opened


def _object(file: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError.at(f"not JSON: {error.msg}", Place(file, error.lineno, error.colno)) from None
    except RecursionError:
        raise InputError.at("nested too deeply", Place(file)) from None
    except ValueError:  # a number of thousands of digits
        raise InputError.at("holds a number that is too long", Place(file)) from None
    if not isinstance(value, dict):
        raise InputError.at(f"holds {_shown(value)}, not an object", Place(file, 1, 1), "it starts with {")
    return value


def place_at(file: str, text: str, offset: int) -> Place:
    """Line and column of a character."""
    return Place(file, text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
