"""Own process: what the installed DeepSpeed says to a JSON list of texts of configs: a list of null or its words."""

import contextlib
import io
import json
import logging
import sys
from typing import Any

import hjson
from stand_ins import stand_in


def verdict(parse: Any, text: str) -> str | None:
    """None where the config is accepted, else what was raised."""
    try:
        parse(hjson.loads(text))  # as DeepSpeed reads a file, which makes 1.0 an int
    except BaseException as error:  # pydantic, asserts, TypeErrors: whatever a user would see
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        stand_in()
        from deepspeed.runtime.config import DeepSpeedConfig

        logging.disable(logging.CRITICAL)
        verdicts = [verdict(DeepSpeedConfig, text) for text in json.load(sys.stdin)]
    json.dump(verdicts, out)


if __name__ == "__main__":
    main()
