"""Own process, one rank on the CPU: what deepspeed.initialize and one step say to a JSON list of configs."""

import contextlib
import io
import json
import logging
import sys
from typing import Any


def verdict(config: dict[str, Any]) -> str | None:
    """None where a step was made, else what was raised."""
    import deepspeed
    import torch

    try:
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        for _ in range(2):
            engine.backward(engine(torch.ones(1, 8)).sum())
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
