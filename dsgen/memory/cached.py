"""What the caching allocator holds beyond what is allocated, while there is room: blocks that no other request can use.

It is no need: short of memory, the allocator gives these back before it fails (framework.py:slack is what stays even
then). Source: derived; c10/cuda/CUDACachingAllocator.cpp keeps free blocks by stream and serves a request from a
block that is at least as large.
"""

from dsgen.facts.constants import constant
from dsgen.memory import auto_tp
from dsgen.memory.framework import slack
from dsgen.memory.fsdp2.units import units_of
from dsgen.memory.ledger import Moment, Part
from dsgen.memory.setting import FP32, Setting


def cached(setting: Setting, peak: Moment) -> int:
    """Bytes reserved, not allocated, at ``peak``.

    - Logits in the compute type, c V: free once they are cast to fp32, and smaller than all that the loss asks for
      after.
    - FSDP2: gradients are made on the stream of the reduce-scatter, 4 t a rank, and gathered on the stream of the
      copy-in, c w of the root (or an embedding apart) and of the largest block (_fsdp_collectives.py:foreach_reduce,
      foreach_all_gather). At the end of the forward pass, where memory is largest, these are free but belong to their
      streams.
    - Of all that a step makes anew the share cache_steady: blocks that were split for something smaller; none where
      segments are expandable. Where lengths vary, cache_varied: whenever a batch is longer than all before it, nothing
      that is cached is large enough, and what it needs comes on top of what the shorter ones left (replayed in
      tests/memory/replay_lengths.py).
    - At least what stays when memory is short.
    """
    found = 0
    code, training = setting.training.code, setting.training
    if training.loss == "full" and code.loss_in_fp32 and setting.mixed and "loss" not in code.fused:
        ranks = 1 if auto_tp.acts(setting.plan, setting.target) else setting.plan.tensor_parallel
        found += setting.width * setting.shapes.architecture.vocab * setting.tokens // ranks
    if setting.target.format == "fsdp2" and setting.shards > 1:
        units = units_of(setting)
        sharded = FP32 * units.trainable_shard
        found += sharded - min(sharded, peak.parts.get("gradients", 0))
        found += setting.width * (max(units.root.whole, units.embedding.whole) + units.largest.whole)
    if not code.expandable_segments:
        share = constant("cache_varied" if code.lengths_vary else "cache_steady")
        anew = peak.total - sum(peak.parts.get(part, 0) for part in _STAYS)
        found = max(found, int(share * anew))
    return max(found, slack(peak.total))


_STAYS: tuple[Part, ...] = ("parameters", "master_weights", "optimizer_states", "residents")
"""Parts that are made once."""
