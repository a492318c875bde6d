"""Gradients and what reduces them, at the points of the backward pass where memory may be largest.

Read in torch 2.13, torch/distributed/fsdp/_fully_shard/: _fsdp_param_group.py:post_backward,
_fsdp_collectives.py:foreach_reduce, _fsdp_param.py:accumulate_unsharded_grad_if_needed.
"""

from collections.abc import Iterator

from dsgen.memory.activations.checkpointed import Activations
from dsgen.memory.activations.points import points
from dsgen.memory.fsdp2 import states
from dsgen.memory.fsdp2.gathered import Gathered
from dsgen.memory.fsdp2.units import NOTHING, ModelUnits, Unit
from dsgen.memory.layers import turning_points
from dsgen.memory.ledger import Part
from dsgen.memory.setting import FP32, Setting

Parts = dict[Part, int]


def resident(setting: Setting, units: ModelUnits) -> int:
    """Gradients that are there when the backward pass of the last micro-batch begins.

    - One micro-batch: none.
    - Several, reduced after the last only: all of them whole in the reduce type, 4 T.
    - Several, reduced each: the rank's shard, 4 t, in host memory if offloaded.
    """
    if setting.plan.accumulation == 1:
        return 0
    if not setting.plan.reduce_each_micro_batch:
        return FP32 * units.trainable
    return 0 if setting.offloads_parameters else states.gradients(units)


def candidates(
    setting: Setting, activations: Activations, outside: int, gathered: Gathered, units: ModelUnits
) -> Iterator[Parts]:
    """Every block's backward pass, and the reduction of the root, or of an embedding that is apart, at the end. Where
    it is, the output head is reduced before the first block runs backwards."""
    apart = units.embedding.whole > 0
    head = 0 if apart else setting.width * setting.shapes.outer.largest_trainable
    before, last = (units.root, units.embedding) if apart else (NOTHING, units.root)
    held = resident(setting, units)
    whole = held if setting.plan.accumulation > 1 and not setting.plan.reduce_each_micro_batch else 0
    layers, upto = activations.layers, activations.upto
    for index in turning_points(setting.shapes, setting.plan.checkpointing.kind != "every"):
        block, behind = units.blocks[index], units.trainable_behind[index]
        reduced = 0 if setting.offloads_parameters else FP32 * (before.trainable_shard + behind.trainable_shard)
        gone = FP32 * (before.trainable + behind.trainable)
        # What was kept whole goes block by block, and its shards come.
        gradients = head + (whole - gone + reduced if whole else max(held, reduced))
        on_its_way = units.blocks[index + 1] if index + 1 < len(units.blocks) else before
        # What it computes with, and the last block's gradients on their way.
        for point in points(setting.shapes, index, layers[index]):
            yield {
                "gradients": gradients + setting.width * min(point.gradients, block.trainable),
                "gathered_parameters": gathered.at_block(index, block.whole),
                "activations": upto[index] + outside + point.activations,
                "buffers": FP32 * on_its_way.trainable,
            }
        yield {
            "gradients": gradients + _reducing(setting, block),
            "gathered_parameters": gathered.before(index),
            "activations": upto[index] + outside - layers[index].kept,
            "buffers": FP32 * block.trainable,
        }
    whole -= FP32 * (units.trainable - last.trainable) if whole else 0
    reduced = 0 if setting.offloads_parameters else FP32 * (units.trainable_shard - last.trainable_shard)
    yield {
        "gradients": max(0 if whole else held, whole + reduced) + _reducing(setting, last),
        # Of a micro-batch before the last, which reduces too where every one does.
        "gathered_parameters": gathered.at_end if setting.plan.reduce_each_micro_batch else 0,
        "buffers": FP32 * last.trainable,
    }


def _reducing(setting: Setting, unit: Unit) -> int:
    """Gradients of a unit while they are reduced, its parameters sharded again. First they are copied into the input
    of the reduce-scatter, 4 w, and freed: c w; then its output is made, which the sharded gradients become: 4 w / N."""
    return max(setting.width * unit.trainable, FP32 * unit.trainable_shard)
