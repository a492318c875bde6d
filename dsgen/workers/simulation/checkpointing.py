"""Activation checkpointing around blocks, as every guide to FSDP has it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

_KEPT = {
    torch.ops.aten.mm.default,
    torch.ops.aten.addmm.default,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
}


def products(_context: Any, operator: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
    """What the generated code keeps: matrix products, and the attention kernel that a CPU has."""
    return CheckpointPolicy.MUST_SAVE if operator in _KEPT else CheckpointPolicy.PREFER_RECOMPUTE


def every_second(*_: Any) -> Any:
    """The contexts of torchtitan's selective_op: of the matrix products of a block it keeps the first, the third, ...
    (torchtitan/distributed/activation_checkpoint.py:_get_custom_policy). They count anew for each block."""
    products_so_far = {False: 0, True: 0}

    def policy(context: Any, operator: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
        kept = operator in _KEPT
        if operator is torch.ops.aten.mm.default:
            products_so_far[context.is_recompute] += 1
            kept = products_so_far[context.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    make: Any = create_selective_checkpoint_contexts
    return make(policy)


def wrap(blocks: Any, request: Mapping[str, Any]) -> None:
    """Wrappers inside the units of FSDP."""
    kind, every = request["checkpointing"]
    if kind == "none":
        return
    more: dict[str, Any] = {}
    if kind == "selective":
        contexts: Any = partial(create_selective_checkpoint_contexts, products)
        more["context_fn"] = every_second if request["every_second_product"] else contexts
    for index in range(0, len(blocks), every if kind == "every" else 1):
        blocks[index] = checkpoint_wrapper(blocks[index], **more)
