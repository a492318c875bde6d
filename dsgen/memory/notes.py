"""What the ledger leaves out or assumes for one plan, in sentences for the user."""

from dsgen.memory import auto_tp
from dsgen.memory.setting import Setting


def notes(setting: Setting) -> tuple[str, ...]:
    """Only what touches this plan."""
    found: list[str] = []
    plan, training, arch = setting.plan, setting.training, setting.shapes.architecture
    own = setting.target.format == "megatron" or auto_tp.acts(plan, setting.target)
    divided = own or training.code.sequence_parallel
    if max(plan.tensor_parallel, plan.pipeline_parallel, plan.expert_parallel) > 1 and not divided:
        found.append("tensor, pipeline and expert parallelism divide the weights; activations are not divided yet")
    if plan.offload_activations and plan.checkpointing.kind != "full":
        found.append("activations are counted on the GPU although they are offloaded")
    if training.compile and "norm" not in training.code.fused:
        found.append("counted as eager; torch.compile keeps fewer intermediates")
    if setting.target.format not in ("deepspeed", "fsdp2", "fsdp1", "ddp", "megatron"):
        found.append(f"states and buffers are counted as DeepSpeed keeps them, not {setting.target.format}")
    if arch.moe is not None:
        found.append("tokens are taken to spread evenly over the experts")
    if arch.sliding_window is not None and training.attention == "eager":
        found.append("eager attention stores all scores, also those outside the sliding window")
    return tuple(found)
