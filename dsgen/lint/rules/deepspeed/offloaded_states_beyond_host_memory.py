from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS708",
    kinds=("deepspeed",),
    about=("target.host_memory",),
    source="deepspeed/ops/adam/cpu_adam.py, runtime/zero/stage3.py (fp32 weights, gradients and two states in RAM)",
)
def offloaded_states_beyond_host_memory(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """What is offloaded to the CPU is more than the nodes' RAM.

    With the optimizer on the CPU, a parameter takes 16 bytes there: its fp32 weight, gradient and Adam's two states,
    spread over the nodes; parameters on the CPU take 2 more. At stages 1 and 2 nvme means the CPU as well. RAM comes
    from ``--host-memory``, model and nodes from ``--model``, ``--world-size``, ``--gpus-per-node`` or a spec.

    ```json bad --host-memory 64GB --world-size 8 --gpus-per-node 8 --model llama-2-7b --method full
    {"train_batch_size": 8, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
     "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}
    ```

    ```json good --host-memory 256GB --world-size 8 --gpus-per-node 8 --model llama-2-7b --method full
    {"train_batch_size": 8, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
     "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}
    ```
    """
    level, model = stage(file, target), target.model
    if target.host_memory is None or model is None or level not in (1, 2, 3):
        return
    from dsgen.lint.amounts import FP32, in_bytes, ranks_per_node, state_bytes, tensor_ranks, width, zero_ranks

    ranks, here, c = zero_ranks(file, target), ranks_per_node(target), width(file, target)
    if ranks is None or here is None or c is None or not _to_cpu(file, level):
        return
    share = here / ranks / tensor_ranks(file)
    states = state_bytes(file)
    trained = model.trained(target.method) * share
    parts = {"fp32 weights and gradients": 2 * FP32 * trained, "optimizer states": states * trained}
    if level == 3 and offload_device(file, "offload_param") == "cpu":
        parts["weights"] = c * model.parameters * share
    total = sum(parts.values())
    if total <= target.host_memory:
        return
    said = target.method is not None
    sum_of = " + ".join(f"{name} {in_bytes(size)}" for name, size in parts.items() if size)
    yield (error if said else warning)(
        ("zero_optimization", "offload_optimizer", "device"),
        f"offloading {model.shown} puts {sum_of} = {in_bytes(total)} on each node, which has "
        f"{in_bytes(target.host_memory)} RAM{'' if said else ', if all weights are trained (--method)'}",
        help="use more nodes" + (', or "device": "nvme"' if level == 3 else ', or stage 3 with "device": "nvme"'),
    )


def _to_cpu(file: ConfigFile, level: int) -> bool:
    ratio = file.get("zero_optimization", "offload_optimizer", "ratio", default=1)
    device = offload_device(file, "offload_optimizer")
    return ratio == 1 and (device == "cpu" or (device == "nvme" and level < 3))
