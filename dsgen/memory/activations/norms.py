"""Normalisation layers."""

from dsgen.memory.activations.saved import Layer, Saved

_FP32 = 4


def norm(
    layer: Layer,
    width: float,
    name: str,
    *,
    output_needed: bool,
    heads: int = 1,
    input_needed: bool = True,
    readers: int = 1,
) -> Saved:
    """One norm over ``width`` features (of ``heads`` heads, each with its own statistics), its output included
    where a later layer needs it. Its input is left out where another layer keeps the same tensor.

    - layernorm (one kernel): input c w; mean and 1/sigma 8 bytes.
    - rmsnorm as transformers writes it (fp32 inside, LlamaRMSNorm.forward): fp32 input 4 w,
      1/rms 4 bytes, and the normalised c w (4 w where the product is taken in fp32), if the weight is trained.
      Fused kernels (Liger, apex, torch >= 2.8 on a GPU) keep the input c w and 1/rms instead.
    - output c w; where the residual stream is wide, as many casts as linear layers read it, and 4 w for the rest.

    Backward transient: gradient in and out in fp32 and one product, 12 w for rmsnorm; gradient in and out, 2 c w, for
    one kernel.
    Shapes: (b, s, w). Source: derived from torch's derivatives.yaml (native_layer_norm, mul, pow, rsqrt).
    """
    c = layer.width
    output = c * width * (readers if layer.wide else 1) if output_needed else 0
    if layer.arch.norm == "layernorm" or "norm" in layer.fused:
        kept_input = layer.between * width if input_needed else 0
        return Saved(kept_input + 2 * _FP32 * heads + output, 0, 2 * c * width)
    product = _FP32 if layer.kernels.norm_product_in_fp32 else layer.between
    normalised = product * width if layer.trains(name) else 0
    return Saved(_FP32 * width + _FP32 * heads + normalised + output, 0, 3 * _FP32 * width)
