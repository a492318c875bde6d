"""What no tensor owns: CUDA context, NCCL, cuBLAS workspace, and what the allocator can't give back."""

from dsgen.facts.constants import constant
from dsgen.memory.setting import Setting


def outside_allocator(setting: Setting) -> int:
    """Bytes that nvidia-smi shows and torch does not count: CUDA context, and NCCL with more than one rank."""
    talks = setting.plan.world_size > 1
    return int(constant("cuda_context") + (constant("nccl_per_rank") if talks else 0))


def workspace() -> int:
    """The cuBLAS workspace of one stream; allocated, but no tensor."""
    return int(constant("cublas_workspace"))


def slack(allocated: int) -> int:
    """Reserved but not allocated at the peak, when memory is short."""
    return int(allocated * constant("allocator_slack"))
