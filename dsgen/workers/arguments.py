"""The options of a generated train.py, as its own parser makes them."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

_NEVER = str(10**9)


def tiny_options(train: Any, steps: int, seed: int, output: Path) -> Any:
    """As if started with ``--size tiny``; nothing is saved or said before the end."""
    given = {"size": "tiny", "steps": steps, "output": output, "save-every": _NEVER, "log-every": _NEVER, "seed": seed}
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    with patch.object(sys, "argv", ["train.py", *words]):
        return train.arguments()
