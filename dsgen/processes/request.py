"""The request file of a worker and the folder that its events go to."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_request(folder: Path, name: str, request: Mapping[str, object]) -> Path:
    """Writes ``<folder>/<name>.json``; events will lie in ``<folder>/<name>/``."""
    events = folder / name
    events.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**request, "events": str(events)}, indent=1), encoding="utf-8")
    return path
