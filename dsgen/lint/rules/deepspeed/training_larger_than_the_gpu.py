from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS710",
    kinds=("deepspeed",),
    about=("target.model",),
    source="dsgen/memory (formulas with their sources), held against measured runs by dsgen score",
)
def training_larger_than_the_gpu(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Weights, gradients, optimizer and activations together are more than the GPU has.

    Judged where all that it depends on is stated: ``--model`` (with its sizes), ``--gpu``, ``--world-size``,
    ``--sequence-length``, ``--checkpointing``, and the micro batch in the file or by ``--micro-batch``, or a spec. What
    the config leaves to code counts as what takes least (flash attention, no whole logits, an optimizer without
    states), and of the ledger's band the lower end. ``dsgen estimate`` shows the whole account.

    ```json bad --model llama-2-7b --gpu a100-40gb-sxm --world-size 16 --sequence-length 4096 --checkpointing none
    {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
     "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
    ```

    ```json good --model llama-2-7b --gpu a100-40gb-sxm --world-size 16 --sequence-length 4096 --checkpointing full
    {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3},
     "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
    ```
    """
    if target.gpu is None or target.checkpointing is None or target.sequence_length is None:
        return
    from dsgen.lint.amounts import in_bytes
    from dsgen.lint.weighed import least_of

    found = least_of(file, target)
    if found is None or found.device.low <= target.gpu.memory or _states_alone(file, target):
        return
    peak = found.device.peak_moment
    largest = sorted(peak.parts.items(), key=lambda part: -part[1])[:3]
    shown = ", ".join(f"{name.replace('_', ' ')} {in_bytes(size)}" for name, size in largest)
    said = target.method is not None
    how = "" if said else ", if all weights are trained (--method)"
    key = ("train_micro_batch_size_per_gpu",)
    yield (error if said else warning)(
        key if file.has(*key) else (),
        f"micro batches of {found.plan.micro_batch} x {target.sequence_length} tokens take at least "
        f"{in_bytes(found.device.low)} at the {peak.name}{how}: {shown}; {target.gpu.name} has "
        f"{in_bytes(target.gpu.memory)}",
        help=_instead(largest[0][0], found.plan.micro_batch, str(target.checkpointing)),
    )


def _states_alone(file: ConfigFile, target: LintTarget) -> bool:
    """Whether DS707 says it already, and more simply."""
    from dsgen.lint.rules.deepspeed.states_larger_than_the_gpu import states_larger_than_the_gpu

    return next(iter(states_larger_than_the_gpu(file, target)), None) is not None


def _instead(largest: str, micro: int, checkpointing: str) -> str:
    if largest in ("activations", "logits"):
        levers = ["a smaller micro batch"] if micro > 1 else []
        levers += ["gradient checkpointing (--checkpointing full)"] if checkpointing == "none" else []
        return f"use {' or '.join(levers or ['shorter sequences'])}; dsgen estimate shows the account"
    return "use a higher ZeRO stage, offload, or more GPUs; dsgen estimate shows the account"
