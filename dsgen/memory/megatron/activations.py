"""What a layer of Megatron-Core (Transformer Engine) keeps, per token, on one tensor-parallel rank.

Symbols: h hidden, q = heads x head_dim, k = kv_heads x head_dim, i intermediate, a heads, s sequence length, t tensor-
parallel ranks, c bytes of a compute element, r = t with sequence parallelism, else 1. Source: Korthikanti et al., arXiv
2205.05198, section 4, whose 34 h + 5 a s is the case k = q = h, i = 4 h, c = 2 with dropout.
"""

from dataclasses import dataclass
from math import ceil

from dsgen.memory.setting import FP32, Setting


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes of one micro-batch on one rank."""

    layer: int
    """One layer, from its forward to its backward pass."""
    transient: int
    """In addition while one layer runs backwards."""
    embedding: int
    """On the first stage, beside the layers."""


def kept(setting: Setting) -> Kept:
    """- Norms: input and output, c h / r each, twice.
    - Attention: q, k, v and the output, c (2 q + 2 k) / t; flash 4 a / t for the softmax's statistics; unfused
      probabilities c a s / t, with dropout their mask and the dropped ones, (1 + c) a s / t.
    - MLP: what the activation reads and gives, 2 c i / t (gated 4 c i / t: fc1's output twice as wide, the product,
      the activated gate).
    - Dropout masks after both halves and after the embedding, h / r each.
    - Full recomputation: the input of each layer, c h / r; a layer's all while it runs backwards. Selective: without
      what unfused attention keeps; of mlp, without the MLP's.
    """
    arch, plan, c = setting.shapes.architecture, setting.plan, setting.width
    t = plan.tensor_parallel
    r = t if setting.training.code.sequence_parallel else 1
    h, q, k = arch.hidden, arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    stated = setting.training.code.dropout
    # GPT was published with dropout, what has a gated MLP without.
    dropout = not arch.gated if stated is None else stated
    masks = 2 * h / r if dropout else 0.0
    scores = 0.0
    if setting.training.attention == "eager":
        each = arch.heads * ceil(setting.sequence_length / plan.context_parallel) / t
        scores = c * each + ((1 + c) * each if dropout else 0)
    statistics = 0.0 if scores else FP32 * arch.heads / t
    mlp = (4 if arch.gated else 2) * c * arch.intermediate / t
    rest = 4 * c * h / r + c * (2 * q + 2 * k) / t + statistics + masks
    whole = rest + mlp + scores
    kind = plan.checkpointing.kind
    layer = {"full": c * h / r, "core_attention": rest + mlp, "core_attention_mlp": rest}.get(kind, whole)
    # While the activation runs backwards: the gradients of what it gave and read, and of the block's output.
    transient = mlp + c * h + (2 * c * arch.heads * setting.sequence_length / t if scores else 0) + whole - layer
    tokens = setting.tokens
    return Kept(round(layer * tokens), round(transient * tokens), round((h / r if dropout else 0) * tokens))
