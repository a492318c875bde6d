"""Peaks of one module, forward and backward, as a kernel's benchmark takes them.

The benchmark keeps weights, input, output and the gradients of an earlier pass, makes new ones, and keeps the graph
(Liger-Kernel benchmark/scripts: y.backward(..., retain_graph=True)). Symbols: T tokens, h hidden, i intermediate,
V vocabulary, c bytes of an element. Validity: the module alone, one GPU, no optimizer.
"""

from collections.abc import Callable, Mapping

from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError

_FP32 = 4


def predicted_bytes(run: Run) -> int:
    """Raises SkippedError for a module without a formula."""
    name = run.texts["model"].partition(":")[2]
    formula = _FORMULAS.get(name)
    if formula is None:
        raise SkippedError(f"module {name!r} has no formula")
    c = _FP32 if run.texts["compute_dtype"] == "fp32" else 2
    return formula(run, c, run.texts["loss_impl"] == "liger")


def _size(run: Run, name: str) -> int:
    value = run.counts[name]
    if value is None:
        raise SkippedError(f"the row says nothing of {name}")
    return value


def _tokens(run: Run) -> int:
    return _size(run, "seq_len") * _size(run, "micro_batch")


def _swiglu(run: Run, c: int, liger: bool) -> int:
    """- Weights 3 h i with an old gradient, c each, and one matrix's new one.
    - Input, its old and new gradient, output and its gradient: 5 c h T.
    - Gate, up, activated gate and product 4 c i T, and the gradients of product, activation and up, 3 c i T. Liger
      keeps gate, up and product, and writes their gradients over them: 3 c i T, and that of the product, c i T
      (dsgen/memory/activations/mlp.py has the rest of it).
    """
    h, i, tokens = _size(run, "hidden"), _size(run, "intermediate"), _tokens(run)
    weights = 3 * h * i
    return round(c * (2 * weights + weights / 3 + (5 * h + (4 if liger else 7) * i) * tokens))


def _cross_entropy(run: Run, c: int, liger: bool) -> int:
    """On given logits: these, and, unless the kernel writes over them, log-probabilities, their gradient, the logits'
    new gradient and the old one: c V T or 5 c V T."""
    return c * _size(run, "vocab") * _tokens(run) * (1 if liger else 5)


def _fused_linear_cross_entropy(run: Run, c: int, liger: bool) -> int:
    """- The head's weight with its old gradient, 2 c V h; hidden states with an old and a new gradient, 3 c h T.
    - torch: logits, log-probabilities, the logits' gradient: 3 c V T; the head's new gradient c V h.
    - Liger: its gradient and one addend, 2 c V h; logits of one chunk and their fp32 form, (c + 4) h T, as in
      dsgen/memory/logits.py.
    """
    h, vocab, tokens = _size(run, "hidden"), _size(run, "vocab"), _tokens(run)
    held = c * (2 * vocab * h + 3 * h * tokens)
    if liger:
        return held + 2 * c * vocab * h + (c + _FP32) * h * tokens
    return held + 3 * c * vocab * tokens + c * vocab * h


def _rms_norm(run: Run, c: int, liger: bool) -> int:
    """With an fp32 weight, as the benchmark makes it, so that the output and its gradient are fp32. Input, its old
    gradient, the given gradient: 3 c h T.

    - Written out (LlamaRMSNorm): 34 h T at the most, as counted over a run of it (tests/score/test_component_norm.py):
      fp32 input, normalised values in both types, output, and five fp32 tensors of the backward pass.
    - Liger: output and its gradient in fp32, over which the input's is written, and its cast: (8 + c) h T.
    """
    h, tokens = _size(run, "hidden"), _tokens(run)
    if c == _FP32:
        raise SkippedError("module 'rms_norm' has no formula in fp32")
    return (3 * c + (2 * _FP32 + c if liger else _NORM_WRITTEN_OUT)) * h * tokens


_NORM_WRITTEN_OUT = 34

_FORMULAS: Mapping[str, Callable[[Run, int, bool], int]] = {
    "rms_norm": _rms_norm,
    "swiglu": _swiglu,
    "cross_entropy": _cross_entropy,
    "fused_linear_cross_entropy": _fused_linear_cross_entropy,
}
