"""Activations of every layer under the plan's checkpointing, bytes of one micro-batch."""

from dataclasses import dataclass

from dsgen.memory.activations.block import block
from dsgen.memory.activations.kernels import kernels_of
from dsgen.memory.activations.saved import Layer, trained_layers
from dsgen.memory.layers import per_layer
from dsgen.memory.setting import Setting
from dsgen.shapes.values import Block


@dataclass(frozen=True, slots=True)
class LayerActivations:
    """Bytes of one layer."""

    kept: int
    """From its forward to its backward pass."""
    extra: int
    """In addition while it runs backwards: what is recomputed, and transients."""


def activations(setting: Setting) -> list[LayerActivations]:
    """Each layer in order, t tokens:

    - none: kept = all that autograd saves; extra = the backward transient.
    - full: kept = the block's input c h t (transformers and torch.utils.checkpoint keep it alone); extra = all
      that autograd saves of one block, and the transient.
    - selective: kept = input, outputs of matrix products and of the attention kernel; extra as with full,
      less what of it is kept.
    - every n: layers 0, n, 2n, ... as full, the others as none.
    """
    checkpointing = setting.plan.checkpointing
    kinds = per_layer(setting.shapes.blocks, lambda each: _one(setting, each))
    if checkpointing.kind == "every":
        return [full if index % checkpointing.every == 0 else none for index, (none, full, _) in enumerate(kinds)]
    position = ("none", "full", "selective").index(checkpointing.kind)
    return [kind[position] for kind in kinds]


def _one(setting: Setting, each: Block) -> tuple[LayerActivations, LayerActivations, LayerActivations]:
    t = setting.tokens
    saved = block(_layer(setting, each), moe=each.is_moe)
    entry = setting.width * setting.shapes.architecture.hidden
    none = LayerActivations(round(saved.kept * t), round(saved.transient * t))
    full = LayerActivations(entry * t, round((saved.kept + saved.transient) * t))
    outputs = entry + saved.outputs
    recomputed = max(0, saved.kept - outputs)
    selective = LayerActivations(round(min(outputs, saved.kept + entry) * t), round((recomputed + saved.transient) * t))
    return none, full, selective


def _layer(setting: Setting, each: Block) -> Layer:
    arch, method = setting.shapes.architecture, setting.training.method
    return Layer(
        arch=arch,
        width=setting.width,
        attention=setting.training.attention,
        sequence_length=setting.sequence_length,
        kernels=kernels_of(arch),
        trained=trained_layers(each),
        lora_rank=method.rank if method.type == "lora" else 0,
        lora_dropout=method.type == "lora" and method.dropout > 0,
    )
