"""A config under change, and the list of what was changed."""

import copy
from collections.abc import Mapping
from typing import Any

from dsgen.smoke.change import Change


class Edits:
    """Nothing is changed but through here, so nothing can be hidden."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config: dict[str, Any] = copy.deepcopy(dict(config))
        self._original = copy.deepcopy(dict(config))
        self._whys: dict[str, list[str]] = {}

    def get(self, key: str) -> Any:
        """Value at a dotted key; None where it, or a section on the way, is absent."""
        return _look_up(self.config, key)

    def set(self, key: str, value: Any, why: str) -> None:
        """Writes a value; sections on the way are made."""
        if key in self and self.get(key) == value:
            return
        *sections, last = key.split(".")
        node = self.config
        for section in sections:
            node = node.setdefault(section, {})
        node[last] = value
        self._note(key, why)

    def drop(self, key: str, why: str) -> None:
        """Removes a key, if it is there."""
        if key not in self:
            return
        section, _, last = key.rpartition(".")
        node = self.get(section) if section else self.config
        del node[last]
        self._note(key, why)

    def __contains__(self, key: str) -> bool:
        section, _, last = key.rpartition(".")
        node = self.get(section) if section else self.config
        return isinstance(node, dict) and last in node

    def _note(self, key: str, why: str) -> None:
        whys = self._whys.setdefault(key, [])
        if why not in whys:
            whys.append(why)

    def changes(self) -> tuple[Change, ...]:
        """One per key that differs from the file, in the order of the first edit."""
        changes = [
            Change(key=key, before=_look_up(self._original, key), after=self.get(key), why="; ".join(whys))
            for key, whys in self._whys.items()
        ]
        return tuple(change for change in changes if change.before != change.after)


def _look_up(config: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(config, dict) or part not in config:
            return None
        config = config[part]
    return config
