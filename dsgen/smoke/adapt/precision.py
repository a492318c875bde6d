"""Number types that this machine can't train in."""

from dsgen.smoke.adapt.edits import Edits
from dsgen.smoke.values import Machine


def precision(edits: Edits, machine: Machine) -> None:
    """fp16 to bf16 where there is no fp16; with both on, DeepSpeed has something to say first."""
    if machine.fp16 or edits.get("fp16.enabled") is not True or edits.get("bf16.enabled") is True:
        return
    why = "this CPU can't train in fp16 (DeepSpeed's CPU accelerator asks oneDNN); loss scaling is not exercised"
    edits.set("fp16.enabled", False, why)
    edits.set("bf16.enabled", True, why)
    if edits.get("data_types.grad_accum_dtype") in ("fp16", "float16", "half", "torch.float16"):
        edits.set("data_types.grad_accum_dtype", "bf16", "micro-batches add up in the compute type, as they did")
