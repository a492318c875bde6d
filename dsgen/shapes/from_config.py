"""A Hugging Face config.json becomes shapes."""

from pathlib import Path

from dsgen.errors import InputError, Place
from dsgen.shapes.values import Shapes


def from_config(path: Path, place: Place | None = None) -> Shapes:
    """Shapes of the model that ``path`` (a config.json, or its folder) describes."""
    raise InputError.at(f"{path}: a model from config.json is not supported yet", place)
