"""Gradients and what reduces them, at the points of the backward pass where memory may be largest.

Read in torch 2.13, torch/distributed/fsdp/_fully_shard/: _fsdp_param_group.py:post_backward,
_fsdp_collectives.py:foreach_reduce, _fsdp_param.py:accumulate_unsharded_grad_if_needed.
"""

from collections.abc import Iterator

from dsgen.memory.activations.checkpointed import LayerActivations
from dsgen.memory.fsdp2 import states
from dsgen.memory.fsdp2.gathered import Gathered
from dsgen.memory.fsdp2.units import ModelUnits, Unit
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
    setting: Setting, layers: list[LayerActivations], outside: int, gathered: Gathered, units: ModelUnits
) -> Iterator[Parts]:
    """Every block's backward pass, and the root's reduction at the end."""
    kept = sum(layer.kept for layer in layers) + outside
    head = setting.width * _head(setting)
    held = resident(setting, units)
    whole = held if setting.plan.accumulation > 1 and not setting.plan.reduce_each_micro_batch else 0
    reduced = 0
    for index in range(len(units.blocks) - 1, -1, -1):
        block = units.blocks[index]
        behind = units.blocks[index + 1] if index + 1 < len(units.blocks) else None
        # What it computes with, and the last block's gradients on their way.
        yield {
            "gradients": max(held, whole + reduced) + head + setting.width * block.trainable,
            "gathered_parameters": gathered.at_block(index, block.whole),
            "activations": kept + layers[index].extra,
            "buffers": FP32 * behind.trainable if behind else 0,
        }
        kept -= layers[index].kept
        yield {
            "gradients": max(held, whole + reduced) + head + _reducing(setting, block),
            "gathered_parameters": gathered.before(index),
            "activations": kept,
            "buffers": FP32 * block.trainable,
        }
        whole -= FP32 * block.trainable if whole else 0
        reduced += 0 if setting.offloads_parameters else FP32 * block.trainable_shard
    yield {
        "gradients": max(0 if whole else held, whole + reduced) + _reducing(setting, units.root),
        # Of a micro-batch before the last, which reduces too where every one does.
        "gathered_parameters": gathered.at_end if setting.plan.reduce_each_micro_batch else 0,
        "buffers": FP32 * units.root.trainable,
    }


def _reducing(setting: Setting, unit: Unit) -> int:
    """Gradients of a unit while they are reduced, its parameters sharded again. First they are copied into the input
    of the reduce-scatter, 4 w, and freed: c w; then its output is made, which the sharded gradients become: 4 w / N."""
    return max(setting.width * unit.trainable, FP32 * unit.trainable_shard)


def _head(setting: Setting) -> int:
    """Elements of the output head, whose gradient is made first and reduced last, with the root."""
    return max((tensor.numel for tensor in setting.shapes.outside if tensor.trainable), default=0)
