"""Gathered parameters and the buffers of gathering, in the compute type.

Read in torch 2.13, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py.
"""

from dsgen.memory.fsdp2.units import ModelUnits
from dsgen.memory.setting import FP32, Setting


class Gathered:
    """Bytes at each point of a step. With w whole elements of a unit and c bytes each:

    - The root is gathered from the beginning of the forward to the end of the backward pass: c w. Where the embedding
      is apart, the output head is gathered where the passes meet, and neither is while blocks run backwards.
    - Stage 3 (reshard_after_forward): one block, c w, and the output buffer of the gather that is ahead, c w. Where
      a block is about to be used these are its own buffer and parameters, or the neighbour's buffer
      (wait_for_unshard keeps the last result until the next is copied out): two blocks at any time.
    - Stage 2: every block stays, c w, from its forward to its backward pass; with several micro-batches, through the
      backward passes of all but the last (set_reshard_after_backward).
    - Nothing is gathered from one rank, but parameters are copied into the compute type all the same (unshard with
      world_size 1); in fp32 these are copies too. The buffer of a gather is not made.
    - Offloaded: the fp32 shards of the unit that is gathered come to the GPU first, 4 bytes each.
    """

    def __init__(self, setting: Setting, units: ModelUnits) -> None:
        self._stays = setting.stage == 2
        self._outlasts = self._stays and setting.plan.accumulation > 1
        self._largest = units.largest.whole
        self._c = setting.width
        self._buffers = 1 if setting.shards > 1 else 0
        self._offloaded = FP32 * units.largest.shard * setting.offloads_parameters
        self._head = self._c * units.root.whole
        self.root = 0 if units.embedding.whole else self._head
        self._upto = units.whole_upto

    @property
    def at_loss(self) -> int:
        """Between the passes: the root, and at stage 2 every block."""
        return self._head + (self._c * self._upto[-1] if self._stays and self._upto else 0)

    def at_block(self, index: int, whole: int) -> int:
        """While block ``index``, of ``whole`` elements, runs backwards."""
        if self._stays:
            return self.root + self._c * self._upto[-1 if self._outlasts else index]
        ahead = self._buffers * (self._largest if index else whole)
        return self.root + self._c * (whole + ahead) + self._offloaded

    def before(self, index: int) -> int:
        """When block ``index`` is sharded again: the root, and what the block before it has or waits for."""
        if self._outlasts:
            return self.at_loss
        if self._stays:
            return self.root + (self._c * self._upto[index - 1] if index else 0)
        return self.root + (self._c * self._buffers * self._largest if index else 0)

    @property
    def at_end(self) -> int:
        """When the root is reduced: nothing, or everything where weights outlast the backward pass."""
        return self.at_loss if self._outlasts else 0
