"""One decoder block: norms, attention, MLP, put together."""

from dataclasses import replace

from dsgen.memory.activations.attention import attention
from dsgen.memory.activations.mlp import mlp
from dsgen.memory.activations.norms import norm
from dsgen.memory.activations.saved import Layer, Saved
from dsgen.shapes.norms import OUTPUT_CLASSES, PARALLEL_CLASSES

_ATTENTION_IN = ("q_proj", "k_proj", "v_proj", "q_a_proj", "kv_a_proj_with_mqa")
_MLP_IN = (
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.gate",
    "mlp.shared_experts.gate_proj",
    "mlp.shared_experts.up_proj",
)


def block(layer: Layer, *, moe: bool) -> Saved:
    """Bytes per token of one block.

    With two layernorms, multi-head attention in eager form, GELU, i = 4 h, 16 bit and dropout this is
    Korthikanti's 34 h + 5 a s per token (arXiv 2205.05198, equation 1), for each norm 8 bytes more.
    The residual stream is not kept by itself: an addition needs no operand for its backward pass.
    Norms after attention or MLP (Gemma-2, OLMo-2) keep their input like those before; what follows them is
    an addition, so their output is not kept.
    """
    front, back = _halves(layer, moe=moe)
    arch, c, h = layer.arch, layer.width, layer.arch.hidden
    core = front.kept + front.transient
    # Of a half whose activation or core is done there are the gradients of what its first matrices gave, and what
    # these have read, with the norm before.
    projected = c * (arch.heads * arch.head_dim + 2 * arch.kv_heads * arch.head_dim + h)
    tiles = layer.tiles if "tiled_mlp" in layer.fused else 1
    widened = c * ((2 if arch.gated else 1) * arch.intermediate / tiles + h)
    norms = norm(layer, h, "input_layernorm", output_needed=True).kept
    return replace(front + back, later=(front.kept + norms + widened, core, norms + projected))


def _halves(layer: Layer, *, moe: bool) -> tuple[Saved, Saved]:
    """Attention and MLP, each with its norms."""
    arch = layer.arch
    before_attention = layer.reads(*_ATTENTION_IN)
    before_mlp = layer.reads(*_MLP_IN)
    if arch.hf_architecture in OUTPUT_CLASSES:
        # Attention and MLP read the residual stream itself, which is then kept for their weights.
        read = layer.width * arch.hidden
        front = Saved(read * before_attention, 0) + attention(layer)
        front += norm(layer, arch.hidden, "post_attention_layernorm", output_needed=False)
        back = Saved(read * before_mlp, 0) + mlp(layer, moe=moe)
        return front, back + norm(layer, arch.hidden, "post_feedforward_layernorm", output_needed=False)
    one_norm = arch.norms_per_layer == 1
    projections, wideners = 1 if layer.kernels.fused_qkv else 3, 2 if arch.gated else 1
    front = norm(
        layer,
        arch.hidden,
        "input_layernorm",
        output_needed=before_attention or (one_norm and before_mlp),
        readers=projections + (wideners if one_norm else 0),
    )
    front += attention(layer)
    if arch.norms_per_layer == 4:
        front += norm(layer, arch.hidden, "post_attention_layernorm", output_needed=False)
        back = norm(layer, arch.hidden, "pre_feedforward_layernorm", output_needed=before_mlp, readers=wideners)
        back += mlp(layer, moe=moe)
        return front, back + norm(layer, arch.hidden, "post_feedforward_layernorm", output_needed=False)
    if one_norm:
        return front, mlp(layer, moe=moe)
    # In parallel blocks both norms read the same tensor.
    own_input = arch.hf_architecture not in PARALLEL_CLASSES
    name = "post_attention_layernorm"
    back = norm(layer, arch.hidden, name, output_needed=before_mlp, input_needed=own_input, readers=wideners)
    return front, back + mlp(layer, moe=moe)
