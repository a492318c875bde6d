"""Normalisation layers."""

from dsgen.memory.activations.saved import Layer, Saved

_FP32 = 4


def norm(layer: Layer, width: float, name: str, *, output_needed: bool) -> Saved:
    """One norm over ``width`` features, its output included where a later layer needs it.

    - layernorm (one kernel): input c w; mean and 1/sigma 8 bytes.
    - rmsnorm as transformers writes it (fp32 inside, LlamaRMSNorm.forward): fp32 input 4 w,
      1/rms 4 bytes, and the normalised c w, if the weight is trained. Fused kernels (Liger, apex,
      torch >= 2.8 on a GPU) keep the input c w and 1/rms instead: 4 w bytes less.
    - output c w.

    Backward transient: gradient in and out in fp32 and one product, 12 w for rmsnorm; 2 c w for layernorm.
    Shapes: (b, s, w). Source: derived from torch's derivatives.yaml (native_layer_norm, mul, pow, rsqrt).
    """
    c = layer.width
    output = c * width if output_needed else 0
    if layer.arch.norm == "layernorm":
        return Saved(c * width + 8 + output, 0, 2 * c * width)
    normalised = c * width if layer.trains(name) else 0
    return Saved(_FP32 * width + _FP32 + normalised + output, 0, 3 * _FP32 * width)
