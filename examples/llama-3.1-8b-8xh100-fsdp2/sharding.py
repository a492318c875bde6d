"""How llama-3.1-8b is laid out with FSDP2 (torch 2.6 or newer).

8 GPUs, ZeRO stage 2, bf16
activation checkpointing: full

Executed with torch 2.13.0; other versions have not been tried.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def device_mesh(device_type: str) -> DeviceMesh:
    """All ranks share one copy of the weights."""
    world = dist.get_world_size()
    return init_device_mesh(device_type, (world,), mesh_dim_names=("shard",))


def shard(model: nn.Module, mesh: DeviceMesh, blocks: nn.ModuleList) -> None:
    """Lays ``model`` out in place; ``blocks`` are its layers, in the order of use.

    Make the optimizer afterwards: parameters are replaced by their shards here.
    """
    # Before sharding, so that a block is recomputed inside its own unit, which is
    # gathered for the backward pass anyway.
    for index, block in enumerate(blocks):
        blocks[index] = checkpoint_wrapper(block)

    # No unit inherits these from another.
    unit: dict[str, Any] = {"mesh": mesh}
    unit["mp_policy"] = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16,  # compute; the shards stay in fp32
        reduce_dtype=torch.float32,  # or sums over many ranks lose small gradients
    )
    # Weights stay gathered between forward and backward pass: less traffic, more memory.
    for block in blocks:
        fully_shard(block, reshard_after_forward=False, **unit)
    # Last, for what stands outside the blocks. Its backward pass begins where its
    # forward pass ends, so it stays gathered in between.
    fully_shard(model, reshard_after_forward=False, **unit)
