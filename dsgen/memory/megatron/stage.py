"""One pipeline stage of Megatron-Core on one tensor-parallel rank: its layers, weights and micro-batches in flight."""

from dataclasses import dataclass
from math import ceil

from dsgen.memory.setting import Setting

_PAD = 128
"""Megatron pads the vocabulary to a multiple of this times the tensor-parallel ranks
(--make-vocab-size-divisible-by)."""


def padded_vocab(setting: Setting) -> int:
    """V padded to a multiple of 128 t."""
    step = _PAD * setting.plan.tensor_parallel
    return ceil(setting.shapes.architecture.vocab / step) * step


@dataclass(frozen=True, slots=True)
class Stage:
    """The first or the last stage."""

    first: bool
    last: bool
    parameters: int
    """Elements on one rank."""
    in_flight: float
    """Layers whose activations live at once, over all micro-batches in flight."""


def stages(setting: Setting) -> tuple[Stage, ...]:
    """The first and the last stage; one that is both without pipeline parallelism.

    - Layers: L / p, in v chunks where stages are virtual.
    - Weights: matrices divided by t; norms and the biases that follow a row-parallel product whole. Embedding on the
      first stage, output head on the last; tied, each holds a copy (Megatron shares it over an all-reduce).
    - Micro-batches m in flight, 1F1B (megatron/core/pipeline_parallel/schedules.py): rank r of p keeps min(m, p - r);
      interleaved, min(m v, 2 (p - r - 1) + (v - 1) p + 1) chunks of L / (p v) layers.
    """
    plan = setting.plan
    p, v = plan.pipeline_parallel, plan.virtual_stages
    layers = len(setting.shapes.blocks) / p
    vocab = padded_vocab(setting) * setting.shapes.architecture.hidden // plan.tensor_parallel
    block = _block(setting)
    found = []
    for rank in {0, p - 1}:
        first, last = rank == 0, rank == p - 1
        parameters = round(layers * block)
        if first:
            parameters += vocab + sum(t.numel for t in setting.shapes.outside if t.name.startswith("embed_positions"))
        if last:
            parameters += sum(t.numel for t in setting.shapes.outside if t.name.startswith("norm."))
            if not (first and setting.shapes.architecture.tied):
                parameters += vocab
        if v > 1:
            chunks = min(plan.accumulation * v, 2 * (p - rank - 1) + (v - 1) * p + 1)
            in_flight = chunks * layers / v
        else:
            in_flight = min(plan.accumulation, p - rank) * layers
        found.append(Stage(first, last, parameters, in_flight))
    return tuple(found)


def _block(setting: Setting) -> float:
    """Elements of one layer on one tensor-parallel rank."""
    t = setting.plan.tensor_parallel
    block = setting.shapes.blocks[0]
    split = sum(x.numel for x in block.tensors if len(x.shape) == 2)
    split += sum(x.numel for x in block.tensors if x.name.endswith(_SPLIT_BIASES))
    return split / t + block.parameters - split


_SPLIT_BIASES = ("q_proj.bias", "k_proj.bias", "v_proj.bias", "up_proj.bias", "gate_proj.bias")
