from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_SIXTEEN_BIT = ("bf16_master_weights_and_grads", "fp16_master_weights_and_grads", "bf16_optimizer_states")


@rule(
    "DS707",
    kinds=("deepspeed",),
    about=("target.model",),
    source="arXiv 1910.02054 section 3.1 (2 + 2 + K bytes a parameter), deepspeed/runtime/zero",
)
def states_larger_than_the_gpu(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Weights, gradients and optimizer states alone are more than the GPU has, before any activation.

    In 16 bit each parameter takes 2 bytes, its gradient 2, its fp32 copy 4 and Adam's states 8; stage 1 divides the
    last two by the ranks, stage 2 the gradient, too, stage 3 all; what is offloaded is not counted. Optimizers that
    the config does not name count no states; qlora's weights have few bits. Model, GPU and ranks come from
    ``--model``, ``--gpu``, ``--world-size`` or a spec.

    ```json bad --model llama-2-7b --gpu a100-80gb-sxm --world-size 8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
    ```

    ```json bad --model 70B --gpu h100-80gb --world-size 8 --method full
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2,
     "offload_optimizer": {"device": "cpu"}}}
    ```

    ```json good --model llama-2-7b --gpu a100-80gb-sxm --world-size 8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
     "zero_optimization": {"stage": 2}}
    ```

    ```json good --model llama-2-7b --gpu rtx-4090 --method lora --world-size 1
    {"train_batch_size": 8, "bf16": {"enabled": true}}
    ```

    ```json good --model llama-2-70b --gpu a100-80gb-sxm --method qlora --world-size 8
    {"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}
    ```
    """
    if target.model is None or target.gpu is None:
        return
    level = stage(file, target)
    if level is None or any(file.get(mode, key) for mode in ("fp16", "bf16") for key in _SIXTEEN_BIT):
        return
    from dsgen.lint.amounts import in_bytes

    parts = dict(_parts(file, target, level))
    total = sum(parts.values())
    if not parts or total <= target.gpu.memory:
        return
    said = target.method is not None
    alone = parts.get("weights", 0) > target.gpu.memory
    sum_of = " + ".join(f"{name} {in_bytes(size)}" for name, size in parts.items() if size)
    how = "" if said or alone else ", if all weights are trained (--method)"
    yield (error if said or alone else warning)(
        ("zero_optimization", "stage") if file.has("zero_optimization", "stage") else (),
        f"at stage {level} {sum_of} = {in_bytes(total)} on every GPU for {target.model.shown}{how}: "
        f"{target.gpu.name} has {in_bytes(target.gpu.memory)}, and activations come on top",
        help=_instead(level, offload_device(file, "offload_optimizer")),
    )


def _parts(file: ConfigFile, target: LintTarget, level: int) -> Iterator[tuple[str, float]]:
    """Bytes on one GPU by part; none where the ranks or the type are not known."""
    from dsgen.lint.amounts import state_bytes, tensor_ranks, width, zero_ranks

    ranks = zero_ranks(file, target) if level else 1
    c, model = width(file, target), target.model
    if ranks is None or c is None or model is None or file.has("pipeline"):
        return
    split = tensor_ranks(file)
    trained = model.trained(target.method) / split
    if level < 3 or offload_device(file, "offload_param") in (None, "none"):
        yield "weights", model.stored(target.method, c) / split / (ranks if level == 3 else 1)
    offloads = level > 0 and offload_device(file, "offload_optimizer") not in (None, "none")
    if offloads:
        return
    yield "gradients", c * trained / (ranks if level >= 2 else 1)
    if c == 2:
        yield "fp32 weights", 4 * trained / ranks
    yield "optimizer states", state_bytes(file) * trained / ranks


def _instead(level: int, offload: str | None) -> str:
    if level < 3:
        more = "" if offload in ("cpu", "nvme") else ", or offload the optimizer to the CPU"
        return f"use a higher stage ({level + 1}{'' if level == 2 else ' to 3'}), more GPUs{more}"
    return "use more GPUs, or offload the optimizer and then the parameters (offload_optimizer, offload_param)"
