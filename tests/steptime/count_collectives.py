"""Own process: what DeepSpeed's engine sends in one step, by kind and in bytes, over those of the model in bf16.

One rank of eight with torch's fake process group, whose collectives do nothing, which changes no size. Arguments: ZeRO
stages; output: JSON, for each stage one object where gradients add up in bf16 and one where they do in fp32.
"""

import contextlib
import io
import json
import logging
import os
import sys
from typing import Any
from unittest.mock import patch

import deepspeed
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dsgen.workers.collectives import KINDS

WORLD, WIDE = 8, 64


class Bytes(TorchDispatchMode):
    """Of each collective the whole: a gather's output, an all-reduce's tensor. Norms and flags are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kind = KINDS.get(func.__name__.partition(".")[0].strip("_"))
        if func.namespace in ("c10d", "_c10d_functional") and kind is not None:
            whole = max(
                sum(leaf.numel() * leaf.element_size() for leaf in tree_leaves(each) if isinstance(leaf, torch.Tensor))
                for each in args
            )
            if whole > WIDE:
                self.sent[kind] = self.sent.get(kind, 0) + whole
        return func(*args, **(kwargs or {}))


def counted(stage: int, sums: str) -> dict[str, float]:
    """Of one step of two micro-batches."""
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDE, WIDE, bias=False) for _ in range(4)))
    elements = sum(each.numel() for each in model.parameters())
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True},
        "data_types": {"grad_accum_dtype": sums},
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
        "zero_optimization": {"stage": stage},
    }
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config, dist_init_required=False
    )
    with Bytes() as seen:
        for _ in range(2):
            engine.backward(engine(torch.ones(1, WIDE, dtype=torch.bfloat16)).sum())
            engine.step()
    return {kind: size / (2 * elements) for kind, size in seen.sent.items()}


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
        found = [[counted(int(stage), sums) for sums in ("bf16", "fp32")] for stage in sys.argv[1:]]
    print(json.dumps(found), file=out)


if __name__ == "__main__":
    main()
