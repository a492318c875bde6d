"""What a GPU can't compute in."""

from dsgen.facts.gpus import Gpu
from dsgen.legality.values import Row


def has_fp16(gpu: Gpu) -> bool:
    """Whether DeepSpeed trains in fp16 there: every card but NVIDIA's before Volta (compute capability 7.0)."""
    capability = gpu.compute_capability
    if capability is None or not capability[0].isdigit():
        return True
    return int(capability.split(".")[0]) >= 7


ROWS = (
    Row(
        name="fp16-before-volta",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.precision == "fp16" and not has_fp16(case.hardware.gpu),
        why=(
            "DeepSpeed refuses fp16 below compute capability 7.0 ('Type fp16 is not supported on your device'); "
            "use precision: fp32"
        ),
        source=(
            "deepspeed/accelerator/cuda_accelerator.py:is_fp16_supported; deepspeed/runtime/engine.py:_do_sanity_check"
        ),
        since="0.13.0",
        fields=("precision",),
    ),
    Row(
        name="bf16-without-hardware",
        formats=("deepspeed", "fsdp2"),
        forbidden=lambda case: case.plan.precision == "bf16" and not case.hardware.gpu.has_bf16,
        why=(
            "this GPU has no native bf16: torch emulates it, several times slower, without a warning; "
            "use precision: fp16 (with dynamic loss scaling), or fp32"
        ),
        source=(
            "deepspeed/accelerator/cuda_accelerator.py:is_bf16_supported, which asks "
            "torch/cuda/__init__.py:is_bf16_supported (including_emulation is true by default)"
        ),
        fields=("precision",),
    ),
)
