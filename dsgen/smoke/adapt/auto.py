"""The word "auto": what the Hugging Face Trainer fills, and nothing else.

Source: transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig. An "auto" that the Trainer does
not know stays: DeepSpeed then drops it (most sections) or stumbles over it, as it would in real life.
"""

from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.adapt.tiny import TINY_HIDDEN
from dsgen.smoke.values import Filling

_WHY = 'the Trainer fills "auto"'


def fill(edits: Edits, filling: Filling, steps: int) -> None:
    """Fills every "auto" that the Trainer would."""
    bf16 = _takes_bf16(edits) if filling.bf16 is None else filling.bf16
    fp16 = not bf16 if filling.fp16 is None else filling.fp16
    values = {
        "train_micro_batch_size_per_gpu": filling.micro_batch,
        "gradient_accumulation_steps": filling.accumulation,
        "gradient_clipping": filling.max_grad_norm,
        "optimizer.params.lr": filling.learning_rate,
        "optimizer.params.betas": list(filling.betas),
        "optimizer.params.eps": filling.eps,
        "optimizer.params.weight_decay": filling.weight_decay,
        "scheduler.params.warmup_min_lr": 0,
        "scheduler.params.warmup_max_lr": filling.learning_rate,
        "scheduler.params.warmup_num_steps": max(1, filling.warmup_steps),
        "scheduler.params.total_num_steps": max(steps, filling.warmup_steps + 1),
        "bf16.enabled": bf16,
        "fp16.enabled": fp16,
        "zero_optimization.reduce_bucket_size": TINY_HIDDEN**2,
    }
    if edits.get("zero_optimization.stage") == 3:
        values["zero_optimization.stage3_prefetch_bucket_size"] = int(0.9 * TINY_HIDDEN**2)
        values["zero_optimization.stage3_param_persistence_threshold"] = 10 * TINY_HIDDEN
    for key, value in values.items():
        if edits.get(key) == "auto":
            edits.set(key, value, _WHY)
    # The product of the other two and the world size: dsgen.smoke.adapt.batch leaves it out.
    if edits.get("train_batch_size") == "auto":
        edits.drop("train_batch_size", f"{_WHY}: follows from the other two")


def _takes_bf16(edits: Edits) -> bool:
    """Which of --bf16 and --fp16 to assume: fp16 only where the file leaves no room for bf16."""
    if edits.get("fp16.enabled") is True:
        return False
    return edits.get("bf16.enabled") in (True, "auto") or edits.get("fp16.enabled") != "auto"
