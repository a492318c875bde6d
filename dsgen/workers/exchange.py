"""Other values for a while in the place of what a module or an object has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def exchanged(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes that are there, with other values until the end of the block."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
