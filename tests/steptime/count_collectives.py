"""Own process: what DeepSpeed's engine sends in one step, by kind and in elements, over those of the model.

One rank of eight with torch's fake process group, whose collectives do nothing, which changes no size. Arguments: ZeRO
stages; output: JSON, one object a stage.
"""

import contextlib
import io
import json
import logging
import os
import sys
from unittest.mock import patch

import deepspeed
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from dsgen.workers.collectives import Collectives

WORLD, WIDE = 8, 64


def counted(stage: int) -> dict[str, float]:
    """Of one step of two micro-batches."""
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDE, WIDE, bias=False) for _ in range(4)))
    elements = sum(each.numel() for each in model.parameters())
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
        "zero_optimization": {"stage": stage},
    }
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config, dist_init_required=False
    )
    seen = Collectives(torch)
    with seen.counting():
        seen.next_step()
        for _ in range(2):
            engine.backward(engine(torch.ones(1, WIDE, dtype=torch.bfloat16)).sum())
            engine.step()
    return {kind: found["elements"] / elements for kind, found in seen.steps[0].items() if found["count"]}


def main() -> None:
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(WORLD)}
    os.environ.update(ranks | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"})
    out = sys.stdout
    print(file=out)  # ends what the import of DeepSpeed printed
    with contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.CRITICAL)
        dist.init_process_group("fake", rank=0, world_size=WORLD, store=FakeStore())
        # Its shared-memory collectives are C++ that takes a minute to build.
        with patch.object(sys.modules["deepspeed.comm.torch"], "build_shm_op", lambda: None):
            deepspeed.init_distributed(dist_init_required=False)
        found = [counted(int(stage)) for stage in sys.argv[1:]]
    print(json.dumps(found), file=out)


if __name__ == "__main__":
    main()
