"""Which number format to compute in."""

from dsgen.hardware import Hardware
from dsgen.legality.rows_precision import has_fp16
from dsgen.plan import Precision
from dsgen.shapes.values import Shapes


def precision_of(wished: Precision | None, hardware: Hardware, shapes: Shapes) -> tuple[Precision, tuple[str, ...]]:
    """The wish, else bf16 where the GPU computes in it, else fp16, else fp32; and what to know about it."""
    gpu = hardware.gpu
    if wished is None:
        if gpu.has_bf16:
            return "bf16", (f"precision bf16: {gpu.name} has it, and it needs no loss scaling.",)
        if not has_fp16(gpu):
            return "fp32", (f"precision fp32: {gpu.name} has neither bf16 nor an fp16 that DeepSpeed supports.",)
        wished = "fp16"
        notes = [f"precision fp16 with dynamic loss scaling: {gpu.name} has no native bf16."]
    else:
        notes = []
    if wished == "fp16" and shapes.architecture.native_dtype in ("bf16", "fp8"):
        notes.append(_bf16_model_in_fp16(shapes, bf16_is_there=gpu.has_bf16))
    return wished, tuple(notes)


def _bf16_model_in_fp16(shapes: Shapes, *, bf16_is_there: bool) -> str:
    # fp16 ends at 65504, bf16 at 3.4e38: activations that pre-training let grow don't fit.
    risk = (
        f"{shapes.name} was pre-trained in bf16: its activations can overflow in fp16 (largest value 65504), which no "
        "loss scale cures, neither a fixed loss_scale nor a higher min_loss_scale"
    )
    cure = "use precision: bf16, which this GPU has" if bf16_is_there else "a GPU with bf16 (Ampere or newer) is safer"
    return f"{risk}; {cure}."
