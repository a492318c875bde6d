"""First values of the weights: the same on any number of ranks."""

from typing import Any

import torch
import torch.distributed as dist
from pretrained import Place, read
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor


def initialise(model: nn.Module, seed: int, device: torch.device) -> None:
    """Fills the sharded parameters of a model that was made on the meta device.

    One module at a time is made whole, with a seed of its own, so no rank ever holds
    more than its largest tensors. Each rank keeps its shard of what rank 0 has made.
    """
    model.to_empty(device=device)
    for module in model.modules():
        shards = dict(module.named_parameters(recurse=False))
        if not shards:
            continue
        for name, shard in shards.items():
            whole = torch.empty(shard.shape, dtype=shard.dtype, device=device)
            setattr(module, name, nn.Parameter(whole))
        torch.manual_seed(seed)
        seed += 1
        reset: Any = module.reset_parameters
        reset()
        for name, shard in shards.items():
            _take(shard, getattr(module, name).detach())
            setattr(module, name, shard)


def fill(model: nn.Module, places: dict[str, Place], device: torch.device) -> None:
    """Gives the sharded parameters published values; adapters keep theirs.

    Only rank 0 reads; it hands out one tensor at a time.
    """
    for path, shard in model.named_parameters():
        name = path.replace("_checkpoint_wrapped_module.", "")
        if name not in places:
            continue
        whole = torch.empty(shard.shape, dtype=shard.dtype, device=device)
        if dist.get_rank() == 0:
            whole.copy_(read(places[name]))
        _take(shard, whole)


@torch.no_grad()
def _take(shard: nn.Parameter, whole: torch.Tensor) -> None:
    assert isinstance(shard, DTensor)
    mine = distribute_tensor(whole, shard.device_mesh, shard.placements)
    shard.to_local().copy_(mine.to_local())
