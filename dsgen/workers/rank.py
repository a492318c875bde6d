"""This process among the others: its number, its device, and the libraries it has loaded."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from dsgen.workers.wire import Events

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Rank:
    """One member of the process group."""

    rank: int
    world_size: int
    device: str
    """cpu or cuda."""
    torch: Any
    deepspeed: Any
    """None where no job of the group needs it."""
    events: Events

    @property
    def torch_device(self) -> Any:
        return self.torch.device(self.device, int(os.environ["LOCAL_RANK"]) if self.device == "cuda" else None)

    def from_first(self, value: float) -> float:
        """Rank 0's number, on every rank."""
        tensor = self.torch.tensor(value, dtype=self.torch.float64, device=self.torch_device)
        self.torch.distributed.broadcast(tensor, 0)
        return float(tensor)


def join(request: Json, events: Events) -> Rank:
    """Loads the libraries and meets the other ranks."""
    events.enter("import torch")
    import torch

    deepspeed: Any = None
    if request["deepspeed"]:
        events.enter("import deepspeed")
        deepspeed = import_module("deepspeed")

    rank = Rank(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), request["device"], torch, deepspeed, events)
    if rank.device == "cuda":
        torch.cuda.set_device(rank.torch_device)
    events.enter("init_process_group")
    backend = "nccl" if rank.device == "cuda" else "gloo"
    if deepspeed is not None:
        from deepspeed.accelerator import get_accelerator

        backend = get_accelerator().communication_backend_name()
    torch.distributed.init_process_group(
        # FSDP2 with offload computes the norm of gradients that lie in host memory.
        "cpu:gloo,cuda:nccl" if backend == "nccl" else backend,
        # A file needs no port, so two runs on one machine can't get into each other's way.
        init_method=Path(request["rendezvous"]).as_uri(),
        rank=rank.rank,
        world_size=rank.world_size,
        timeout=timedelta(seconds=request["timeout"]),
    )
    if deepspeed is not None:
        events.enter("deepspeed.init_distributed")
        deepspeed.init_distributed(backend)
    return rank
