"""Parameters that stage 3 has gathered, in elements.

Read in deepspeed 0.19.8: runtime/zero/partitioned_param_coordinator.py and partition_parameters.py.
"""

from dsgen.memory.layers import per_layer
from dsgen.memory.setting import Setting
from dsgen.shapes.values import Block, Tensor


def gathers(setting: Setting) -> bool:
    """Whether gathering costs memory: at stage 3, unless the only rank holds the weights on its GPU already
    (partition_parameters.py:_no_gather_coalesced then takes the shard itself)."""
    return setting.stage == 3 and (setting.shards > 1 or setting.offloads_parameters)


def persistent(setting: Setting) -> int:
    """Elements of parameters too small to be sharded: those of at most persistence_threshold elements
    stay gathered from the first use on (parameter_offload.py:mark_persistent_parameters)."""
    threshold = setting.plan.buckets.persistence_threshold
    inside = per_layer(setting.shapes.blocks, lambda block: _small(block.tensors, threshold))
    return sum(inside) + _small(setting.shapes.outside, threshold)


def _small(tensors: tuple[Tensor, ...], threshold: int) -> int:
    return sum(tensor.numel for tensor in tensors if tensor.numel <= threshold)


def kept_over_the_turn(blocks: tuple[Block, ...], head: int, reuse_distance: int) -> tuple[int, int]:
    """What is still gathered where the forward pass turns into the backward pass.

    A module's parameters are released after use unless the trace uses them again within
    max_reuse_distance elements (__params_to_release). With A elements behind a block, its backward
    use is 2 A elements away. Returns the index of the first block that is kept, and the elements
    from there to the end, output head included. max_live_parameters does not release anything: it only
    bounds what is prefetched.
    """
    behind, first = head, len(blocks)
    while first and 2 * behind < reuse_distance:
        first -= 1
        behind += blocks[first].parameters
    return first, behind


def prefetched(setting: Setting, available: int) -> int:
    """Elements fetched ahead: at most prefetch_bucket_size, while max_live_parameters is not reached
    (fetch_sub_module, max_params_to_prefetch)."""
    buckets = setting.plan.buckets
    return max(0, min(buckets.prefetch, buckets.max_live_parameters - available, setting.parameters - available))
