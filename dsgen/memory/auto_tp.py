"""What DeepSpeed's AutoTP leaves on one tensor-parallel rank.

A Hugging Face model's own plan (base_model_tp_plan) splits the projections of attention and MLP, by columns on the way
in and by rows on the way out, and an output head that is not tied; AutoTP turns it into its own
(deepspeed/module_inject/tp_plan_converter.py:convert). Embedding, norms and the residual stream stay whole on every
rank, and the head's output is gathered, so that the logits are whole too.
"""

from dataclasses import replace
from math import ceil

from dsgen.memory.derived import derived
from dsgen.plan import Plan
from dsgen.shapes.values import Architecture, Shapes, Tensor
from dsgen.target import Target

_BY_COLUMNS = ("q_proj.bias", "k_proj.bias", "v_proj.bias", "gate_proj.bias", "up_proj.bias")
_HEAD = "lm_head."


def acts(plan: Plan, target: Target) -> bool:
    """Whether AutoTP splits the plan's model."""
    return target.format == "deepspeed" and plan.tensor_parallel > 1


def parameters_of_rank(shapes: Shapes, ranks: int) -> tuple[int, int]:
    """Parameters and trained parameters of one rank: split ones / t, the rest whole."""
    return derived(shapes, ("auto_tp", ranks), lambda: _count(shapes, ranks))


def _count(shapes: Shapes, ranks: int) -> tuple[int, int]:
    counted = trained = 0.0
    blocks = [tensor for block in shapes.blocks for tensor in block.tensors]
    for tensor, split in (
        *((tensor, _is_split(tensor)) for tensor in blocks),
        *((tensor, tensor.name.startswith(_HEAD)) for tensor in shapes.outside),
    ):
        share = tensor.numel / (ranks if split else 1)
        counted += share
        trained += share if tensor.trainable else 0
    return ceil(counted), ceil(trained)


def _is_split(tensor: Tensor) -> bool:
    return len(tensor.shape) == 2 or tensor.name.endswith(_BY_COLUMNS)


def architecture_of_rank(architecture: Architecture, ranks: int) -> Architecture:
    """As the blocks of one rank compute: heads and the MLP's width / t, the residual stream whole."""
    return replace(
        architecture,
        heads=architecture.heads // ranks,
        kv_heads=max(1, architecture.kv_heads // ranks),
        intermediate=architecture.intermediate // ranks,
    )
