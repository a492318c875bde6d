"""FLOPs of the model, as utilisation is reported."""

from dsgen.shapes.values import Block, Shapes
from dsgen.spec.values import Training


def model_flops(shapes: Shapes, training: Training, sequence_length: int) -> float:
    """FLOPs that one token takes: 6 N + 12 L q s, with N the parameters that a token meets, q the width of all heads
    and s the sequence length; adapters leave out the weight's gradient, 4 N + 12 L q s. No discount for a causal mask,
    and nothing for recomputation (PaLM, arXiv 2204.02311, appendix B). Of a mixture, N counts the experts that a token
    goes to.
    """
    arch = shapes.architecture
    active = sum(shapes.order.count(position) * _active(shapes, block) for position, block in enumerate(shapes.kinds))
    active += shapes.outer.parameters
    per_parameter = 4 if training.method.type == "lora" else 6
    mla = arch.mla
    width = arch.head_dim if mla is None else (mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim) / 2
    return per_parameter * active + 12 * arch.layers * arch.heads * width * sequence_length


def _active(shapes: Shapes, block: Block) -> float:
    """Parameters of a block that one token meets."""
    moe = shapes.architecture.moe
    if not block.is_moe or moe is None:
        return block.parameters
    experts = sum(tensor.numel for tensor in block.tensors if ".experts." in tensor.name)
    return block.parameters - experts * (1 - moe.top_k / moe.experts)
