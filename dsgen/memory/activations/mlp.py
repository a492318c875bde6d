"""The MLP: gated or not, dense or a mixture of experts. Symbols as in attention.py; i intermediate."""

from dsgen.memory.activations.saved import Layer, Saved
from dsgen.shapes.values import Moe

_FP32 = 4
_MASK = 1


def mlp(layer: Layer, *, moe: bool) -> Saved:
    """All of it but the norm before, whose output is its input."""
    if moe and layer.arch.moe is not None:
        return _mixture(layer, layer.arch.moe)
    saved = _dense(layer, layer.arch.intermediate, "mlp")
    if "tiled_mlp" in layer.fused:
        saved = _tiled(layer, saved)
    if layer.kernels.dropout:
        saved += Saved(_MASK * layer.arch.hidden, 0)
    return saved


def _tiled(layer: Layer, whole: Saved) -> Saved:
    """The sequence in tiles, forward and, made anew, backward: only the input is kept. While it runs backwards there
    are the gradients of all inputs and outputs, 2 c h, and one tile of all the rest
    (deepspeed/runtime/sequence_parallel/ulysses_sp.py:TiledMLP)."""
    gradients = 2 * layer.width * layer.arch.hidden
    return Saved(0, layer.width * layer.arch.hidden, gradients + (whole.kept + whole.transient) / layer.tiles)


def _dense(layer: Layer, i: float, prefix: str, down_trained: bool | None = None) -> Saved:
    """Bytes per token:

    - gated: gate, act(gate), up, product: 4 c i (the product only where down_proj is trained);
      backward transient: when the product's own backward pass runs, the product is gone and there are the
      gradients of product, gate and up: 3 c i less what the product took.
      One kernel for activation and product (Liger-Kernel ops/swiglu.py) keeps gate, up and product, 3 c i, and writes
      the gradients of gate and up over them: c i less what the product took.
    - not gated: input and output of the activation, 2 c i (the output only where down_proj is trained); GELU in steps
      c i x 3 more; ReLU keeps its output alone. Backward transient: likewise 2 c i less what the output took.

    To each transient comes the gradient of the block's output, c h. Source: derived; for GELU, arXiv 2205.05198,
    section 4.1 (8 h + 8 h for i = 4 h, 16 bit).
    """
    c = layer.width
    if down_trained is None:
        down_trained = layer.reads(f"{prefix}.down_proj")
    product = c * i if down_trained else 0
    h = layer.arch.hidden
    adapters = layer.adapters(h, f"{prefix}.gate_proj", f"{prefix}.up_proj") + layer.adapters(i, f"{prefix}.down_proj")
    if layer.arch.gated and "mlp" in layer.fused:
        return Saved(2 * c * i + product + adapters, c * (2 * i + h), c * i - product + c * h)
    if layer.arch.gated:
        return Saved(3 * c * i + product + adapters, c * (2 * i + h), 3 * c * i - product + c * h)
    if layer.arch.mlp == "relu":
        return Saved(c * i + adapters, c * (i + h), c * i + c * h)
    steps = 3 if layer.kernels.gelu_in_steps else 0
    return Saved((1 + steps) * c * i + product + adapters, c * (i + h), 2 * c * i - product + c * h)


def _mixture(layer: Layer, moe: Moe) -> Saved:
    """Each token passes top_k experts: their input c h each (copied in the order of the experts), their
    dense formula with the expert's width, their output c h each (kept for the gradient of the routing weight).
    Router: logits and probabilities in fp32, 8 bytes an expert. Shared experts are one dense MLP.

    Validity: one rank holds all experts; no padding to a capacity. Source: derived from
    transformers 5.24 models/mixtral/modeling_mixtral.py (MixtralExperts.forward).
    """
    c, h = layer.width, layer.arch.hidden
    trained = layer.reads("mlp.experts.down_proj")
    expert = _dense(layer, moe.intermediate, "mlp.experts", down_trained=trained)
    inputs = c * h if layer.reads("mlp.experts.gate_proj", "mlp.experts.up_proj") else 0
    k = moe.top_k
    saved = Saved(
        k * (expert.kept + inputs + c * h) + 2 * _FP32 * moe.experts,
        k * expert.outputs + c * moe.experts,
        k * (expert.transient + 2 * c * h),
    )
    shared = moe.shared_intermediate if moe.shared_intermediate is not None else moe.shared * moe.intermediate
    return saved + _dense(layer, shared, "mlp.shared_experts") if shared else saved
