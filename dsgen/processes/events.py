"""Reads along in the event files that workers write (dsgen/workers/wire.py)."""

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class EventFile:
    """The events of one worker so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.events: list[Event] = []

    def read(self) -> list[Event]:
        """Takes in what was written since the last call; returns only that."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        new = [json.loads(line) for line in whole.splitlines()]
        self.events += new
        return new

    def of_case(self, case: int, kind: str) -> list[Event]:
        """Events of one kind that belong to one case."""
        return [event for event in self.events if event["case"] == case and event["event"] == kind]

    def last(self, kind: str) -> Event | None:
        """The newest event of a kind."""
        return next((event for event in reversed(self.events) if event["event"] == kind), None)
