"""What else lives on one GPU beside what is trained."""

from math import ceil

from dsgen.memory.setting import Setting


def models(setting: Setting) -> int:
    """Weights of models that are only read: c P each, and c P / N at stage 3.

    They are in the compute type, no gradient or state belongs to them, and their passes end before the trained model's
    begins, so that what these keep for a moment is never the largest. At stage 3 they are sharded over the same ranks
    as the trained model, since a whole copy on each would undo the sharding (DeepSpeed: an engine of its own with a
    stage 3 config, as TRL's prepare_deepspeed makes one; stage 0 else). Tensor and pipeline ranks hold their share.
    """
    plan = setting.plan
    ranks = plan.tensor_parallel * plan.pipeline_parallel
    shards = setting.shards if setting.stage == 3 else 1
    counts = [
        _without_adapters(setting) if resident.parameters is None else resident.parameters
        for resident in setting.training.residents
        if resident.model is not None
    ]
    return sum(setting.width * ceil(count / (ranks * shards)) for count in counts)


def programs(setting: Setting) -> int:
    """Bytes that other processes keep: so many, or a share of all that the card has (as vLLM's
    gpu_memory_utilization counts it)."""
    card = setting.hardware.gpu.memory
    return sum(resident.reserve + round(resident.share * card) for resident in setting.training.residents)


def _without_adapters(setting: Setting) -> int:
    shapes = setting.shapes
    if setting.training.method.type == "full":
        return shapes.parameters
    blocks = sum(tensor.numel for block in shapes.blocks for tensor in block.tensors if ".lora_" not in tensor.name)
    return blocks + sum(tensor.numel for tensor in shapes.outside)
