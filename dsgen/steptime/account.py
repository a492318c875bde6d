"""The step time of one plan."""

from dsgen.facts.constants import constant
from dsgen.hardware import Hardware
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.steptime.values import StepTime, TimePart
from dsgen.target import Target

_ASSUMED_TFLOPS = 100.0
_ASSUMED_GB_S = 1000.0


def step_time(
    plan: Plan, shapes: Shapes, training: Training, sequence_length: int, hardware: Hardware, target: Target
) -> StepTime:
    """Seconds of one optimizer step of ``plan``.

    shapes: of the model as it is trained (adapters and what is frozen included).
    """
    gpu = hardware.gpu
    known = (gpu.bf16_tflops or gpu.fp16_tflops) if plan.precision != "fp32" else gpu.fp32_tflops
    peak = (known or _ASSUMED_TFLOPS) * 1e12
    arch = shapes.architecture
    parameters = shapes.parameters
    per_token = 2 * parameters + 4 * arch.layers * arch.hidden * sequence_length
    backward = per_token if training.method.type == "lora" else 2 * per_token
    tokens = plan.micro_batch * plan.accumulation * sequence_length / (plan.context_parallel * plan.ulysses)
    ranks = plan.tensor_parallel * plan.pipeline_parallel
    rate = peak * (gpu.achievable_matmul_fraction or 0.7) * 0.75
    compute = (per_token + backward) * tokens / ranks / rate
    again = per_token * tokens / ranks / rate
    kind = plan.checkpointing.kind
    recomputation = {"none": 0.0, "full": again, "every": again / plan.checkpointing.every}.get(kind, again / 8)
    # Megatron reduces gradients in fp32.
    width = 3 if target.format == "megatron" else 2
    volume = width * (3 if plan.zero_stage == 3 else 2) * parameters / ranks
    link = (gpu.link_gb_s or 16) * 1e9
    if plan.world_size > plan.gpus_per_node:
        link = min(link, (hardware.inter_node_gbit_s or 400) / 8 * 1e9 / plan.gpus_per_node)
    exchanged = 0.0 if plan.data_parallel == 1 else volume / link / 0.8
    communication = max(0.0, exchanged - 0.7 * compute)
    optimizer = 28 * shapes.trainable / ranks / (plan.shards if plan.zero_stage else 1)
    seconds = optimizer / ((gpu.memory_gb_s or _ASSUMED_GB_S) * 1e9)
    offload = 0.0
    if plan.offload_optimizer != "none":
        shard = shapes.trainable / ranks / plan.shards
        seconds = 28 * shard / 20e9
        offload = 4 * shard / 16e9 + (24 * shard / 3e9 if plan.offload_optimizer == "nvme" else 0)
    bubble = (compute + recomputation) * (plan.pipeline_parallel - 1) / (plan.accumulation * plan.virtual_stages)
    parts: dict[TimePart, float] = {
        "compute": compute,
        "recomputation": recomputation,
        "communication": communication,
        "offload": offload,
        "optimizer": seconds,
        "bubble": bubble,
        "launch": 0.0,
    }
    total = sum(parts.values())
    speed = plan.global_batch * sequence_length / total / plan.world_size
    band = constant("band_time")
    return StepTime(
        parts=parts,
        tokens_per_second_per_gpu=speed,
        mfu=(per_token + backward) * speed / peak if known else None,
        low=total * (1 - band),
        high=total * (1 + band),
    )
