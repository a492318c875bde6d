"""Attention kernels that the GPU or the type has not, and schedules that cannot be written."""

from dsgen.facts.gpus import Gpu
from dsgen.legality.values import Case, Row


def _before_ampere(gpu: Gpu) -> bool:
    """Whether the card is NVIDIA's and older than compute capability 8.0; of others nothing is claimed."""
    return gpu.cuda is not None and gpu.cuda < 8


def _falls_without_end(case: Case) -> bool:
    wanted = case.training.scheduler
    return wanted is not None and wanted.type != "constant" and wanted.total_steps is None


ROWS = (
    Row(
        name="flash-attention-before-ampere",
        formats=("deepspeed", "fsdp2"),
        forbidden=lambda case: case.training.attention == "flash" and _before_ampere(case.hardware.gpu),
        why=(
            "FlashAttention needs compute capability 8.0 (Ampere) or newer, which this GPU has not: flash_attn stops, "
            "and torch's own takes another kernel; use attention: sdpa"
        ),
        source=(
            "torch/backends/cuda/__init__.py:can_use_flash_attention; "
            "transformers/modeling_utils.py:_flash_attn_can_dispatch"
        ),
        library="torch",
        fields=("attention",),
    ),
    Row(
        name="flash-attention-in-fp32",
        formats=("deepspeed", "fsdp2"),
        forbidden=lambda case: case.training.attention == "flash" and case.plan.precision == "fp32",
        why="FlashAttention computes in fp16 and bf16 only; use attention: sdpa, or precision: bf16",
        source=(
            "transformers/modeling_utils.py:_flash_attn_can_dispatch (only supports torch.float16 and torch.bfloat16); "
            "torch/backends/cuda/__init__.py:can_use_flash_attention"
        ),
        library="torch",
        fields=("attention", "precision"),
    ),
    Row(
        name="falling-schedule-without-an-end",
        formats=("deepspeed",),
        forbidden=lambda case: case.target.loaded_by == "deepspeed" and _falls_without_end(case),
        why=(
            "a schedule that falls needs total_steps, the optimizer steps of the whole training: DeepSpeed's "
            "WarmupCosineLR and WarmupDecayLR have no default for it"
        ),
        source="deepspeed/runtime/lr_schedules.py:WarmupCosineLR; deepspeed/runtime/lr_schedules.py:WarmupDecayLR",
        fields=("scheduler",),
    ),
)
