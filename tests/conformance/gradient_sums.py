"""Own process, one rank on the CPU: what DeepSpeed makes of 64 gradients, for a JSON list of configs.

The first gradient is 1, the other 63 are 1/512: in fp32 their sum is 1 + 63/512, in bf16 it stays 1, and
in fp16 it is that of fp32. DeepSpeed divides by 64; SGD with rate 1 takes the mean off the weight.
"""

import contextlib
import io
import json
import logging
import sys
from typing import Any

STEPS = 64


def summed(config: dict[str, Any]) -> Any:
    """The sum of the gradients by which the fp32 weights were stepped, and the class that stepped them."""
    import deepspeed
    import torch
    from deepspeed.utils import safe_get_full_fp32_param

    try:
        # Wide enough for the shards of an accelerator; all elements are alike.
        model = torch.nn.Linear(8, 8, bias=False)
        torch.nn.init.zeros_(model.weight)
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        for number in range(STEPS):
            ones = torch.full((1, 8), 1.0 if number == 0 else 1 / 512, dtype=torch.bfloat16)
            engine.backward(engine(ones).sum())
            engine.step()
        weight = safe_get_full_fp32_param(engine.module.weight)
    except BaseException as error:  # whatever a user would see
        return f"{type(error).__name__}: {error}"
    return [float(-weight.flatten()[0] * STEPS), type(engine.optimizer).__name__]


def main() -> None:
    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.CRITICAL)
        answers = [summed(config) for config in json.load(sys.stdin)]
    json.dump(answers, out)


if __name__ == "__main__":
    main()
