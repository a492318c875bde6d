"""Own process, one rank on the CPU: engines that are made as code makes them; what each attempt raised, or null."""

import contextlib
import io
import json
import logging
import sys
from typing import Any


def attempt(config: dict[str, Any], *, zero_init: bool) -> str | None:
    """Builds, under zero.Init or not, and trains two steps."""
    import deepspeed
    import torch

    try:
        with deepspeed.zero.Init(config_dict_or_path=config, enabled=zero_init):
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        for _ in range(2):
            engine.backward(engine(torch.ones(1, 8)).sum())
            engine.step()
    except BaseException as error:  # whatever a user would see
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    import deepspeed

    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.CRITICAL)
        deepspeed.init_distributed()
        said = [attempt(config, zero_init=zero_init) for config, zero_init in json.load(sys.stdin)]
    json.dump(said, out)


if __name__ == "__main__":
    main()
