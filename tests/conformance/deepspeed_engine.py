"""Own process, one rank on the CPU: what deepspeed.initialize and three steps say to a JSON list of configs."""

import contextlib
import io
import json
import logging
import sys
from typing import Any


def verdict(config: dict[str, Any]) -> str | None:
    """None where three steps were made, else what was raised."""
    import deepspeed
    import torch

    try:
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        batch = torch.ones(1, 8, dtype=next(engine.module.parameters()).dtype)
        for _ in range(3):
            engine.backward(engine(batch).sum())
            engine.step()
    except BaseException as error:  # asserts, TypeErrors, ZeroDivisionErrors: whatever a user would see
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.CRITICAL)
        verdicts = [verdict(config) for config in json.load(sys.stdin)]
    json.dump(verdicts, out)


if __name__ == "__main__":
    main()
