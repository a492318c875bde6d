"""Own process: the learning rates of a JSON list of scheduler sections, as DeepSpeed's own classes give them.

As in the engine (deepspeed/runtime/engine.py:_take_model_step), the optimizer is stepped first, the scheduler after it.
"""

import json
import sys
from typing import Any

PEAK, STEPS = 1.0, 16


def rates(section: dict[str, Any]) -> list[float]:
    """The rate of each of the first optimizer steps."""
    import torch
    from deepspeed.runtime import lr_schedules

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = getattr(lr_schedules, section["type"])(optimizer, **section["params"])
    found = []
    for _ in range(STEPS):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return found


if __name__ == "__main__":
    found = [rates(section) for section in json.loads(sys.stdin.read())]
    sys.stdout.write(json.dumps(found) + "\n")
