"""Parameters that stage 3 has gathered, and when.

Read in deepspeed 0.19.8: runtime/zero/partitioned_param_coordinator.py, parameter_offload.py and
partition_parameters.py.
"""

from itertools import accumulate

from dsgen.memory.derived import derived
from dsgen.memory.frozen import dequantized
from dsgen.memory.setting import Setting
from dsgen.shapes.values import Block, Shapes, Tensor


def gathers(setting: Setting) -> bool:
    """Whether gathering costs memory: at stage 3, unless the only rank holds the weights on its GPU already
    (partition_parameters.py:_no_gather_coalesced then takes the shard itself)."""
    return setting.stage == 3 and (setting.shards > 1 or setting.offloads_parameters)


def persistent(setting: Setting) -> int:
    """Elements of parameters too small to be sharded: those of at most persistence_threshold elements
    stay gathered from the first use on (parameter_offload.py:mark_persistent_parameters)."""
    threshold, shapes = setting.plan.buckets.persistence_threshold, setting.shapes

    def work() -> int:
        kinds = [_small(block.tensors, threshold) for block in shapes.kinds]
        return sum(kinds[kind] for kind in shapes.order) + _small(shapes.outside, threshold)

    return derived(shapes, ("persistent", threshold), work)


def _small(tensors: tuple[Tensor, ...], threshold: int) -> int:
    return sum(tensor.numel for tensor in tensors if tensor.numel <= threshold)


def kept_over_the_turn(shapes: Shapes, reuse_distance: int) -> tuple[int, int]:
    """What is still gathered where the forward pass turns into the backward pass.

    A module's parameters are released after use unless the trace uses them again within
    max_reuse_distance elements (__params_to_release). With A elements behind a block, its backward
    use is 2 A elements away. Returns the index of the first block that is kept, and the elements
    from there to the end, output head included. max_live_parameters does not release anything: it only
    bounds what is prefetched. Tied or not, the output head is the largest tensor outside the blocks.
    """

    def work() -> tuple[int, int]:
        blocks = shapes.blocks
        behind, first = shapes.outer.largest, len(blocks)
        while first and 2 * behind < reuse_distance:
            first -= 1
            behind += blocks[first].parameters
        return first, behind

    return derived(shapes, ("kept over the turn", reuse_distance), work)


def prefetched(setting: Setting, available: int, largest: int) -> int:
    """Elements fetched ahead: whole tensors until prefetch_bucket_size or max_live_parameters is reached
    (fetch_sub_module, max_params_to_prefetch), so at least one of ``largest`` elements where any is."""
    buckets = setting.plan.buckets
    allowed = min(buckets.prefetch, buckets.max_live_parameters - available)
    return max(0, min(max(allowed, largest), setting.parameters - available)) if allowed > 0 else 0


class Gathered:
    """Bytes of gathered parameters at each point of the backward pass. Below stage 3 there are none but the one matrix
    that is rebuilt of few bits while it is used."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._blocks = setting.shapes.blocks
        self._on = gathers(setting)
        self.persistent = setting.width * persistent(setting) if self._on else 0
        """Always there."""
        self.at_loss = 0
        """Output head, the last layers kept over the turn, and what is fetched ahead."""
        self.first = len(self._blocks)
        """The first block that is kept over the turn."""
        self._kept: list[int] = []
        self._largest = 0
        self._held = [0] * len(self._blocks)
        if self._on:
            self._turn()

    def _turn(self) -> None:
        shapes = self._setting.shapes
        self._largest = max((block.largest for block in shapes.kinds), default=0)
        self.first, live = kept_over_the_turn(shapes, self._setting.plan.buckets.max_reuse_distance)
        self._held = _held_by_views(self._setting)
        # What is kept over the turn anyway is counted there.
        before = self._held[self.first - 1] if self.first else 0
        self.at_loss = self._bytes(live) + before
        self._kept = list(accumulate(block.parameters for block in self._blocks[self.first :]))

    def at_block(self, index: int) -> int:
        """While block ``index`` runs backwards: itself, those before it that were kept over the turn, prefetch."""
        if not self._on:
            return dequantized(self._setting, self._blocks[index])
        kept = index - self.first
        if kept >= 0:
            return self._bytes(self._kept[kept]) + (self._held[self.first - 1] if self.first else 0)
        return self._bytes(self._blocks[index].parameters) + (self._held[index - 1] if index else 0)

    def _bytes(self, live: int) -> int:
        return self.persistent + self._setting.width * (live + prefetched(self._setting, live, self._largest))


def _held_by_views(setting: Setting) -> list[int]:
    """Bytes of experts' weights that stay gathered from forward to backward pass, of each block and those before it.

    Weights that are stacked are used one expert at a time, and autograd keeps these views of the gathered tensor; what
    DeepSpeed releases is the parameter's own reference (partition_parameters.py:free_param). Where a block is
    recomputed its views are made anew.
    """
    checkpointing = setting.plan.checkpointing
    sums, total = [], 0
    for index, block in enumerate(setting.shapes.blocks):
        again = checkpointing.kind != "none" and (checkpointing.kind != "every" or index % checkpointing.every == 0)
        if block.is_moe and not again:
            total += setting.width * stacked(block)
        sums.append(total)
    return sums


def stacked(block: Block) -> int:
    """Elements of experts' weights, which are stacked."""
    return sum(tensor.numel for tensor in block.tensors if tensor.name.startswith("mlp.experts."))
