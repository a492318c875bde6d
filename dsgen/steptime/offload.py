"""Offload: traffic over PCIe and to NVMe, and Adam on the host's processors.

Symbols: n parameters that a rank updates, P parameters of a rank, c bytes of a compute element.
"""

from dsgen.facts.constants import constant
from dsgen.steptime.optimizer import updated
from dsgen.steptime.setting import FP32, Setting
from dsgen.steptime.sharding import exposed

_STATES = 12
"""Bytes of a parameter's master weight and two moments."""


def after_passes(setting: Setting) -> tuple[float, float]:
    """Seconds of traffic, and of the step itself, once a step, where the optimizer is offloaded.

    - New weights go back to the GPU, c n, at the PCIe rate of the rank; gradients went down during the backward pass.
    - The host steps n parameters of each of the node's g ranks together: cpu_adam parameters/s for a node.
    - NVMe: states are read and written once, 2 x 12 n, at nvme_rate for a node; reading overlaps with the step of what
      is there.
    """
    plan = setting.plan
    if plan.offload_optimizer == "none":
        return 0.0, 0.0
    n = updated(setting)
    ranks = min(plan.gpus_per_node, plan.world_size)
    step = n * ranks / constant("cpu_adam")
    traffic = 0.0 if plan.offload_parameters != "none" else setting.width * n / setting.machine.pcie
    if plan.offload_optimizer == "nvme":
        moved = 2 * _STATES * n * ranks / constant("nvme_rate")
        traffic += max(0.0, moved - step)
    return traffic, step


def with_micro_batch(setting: Setting, forward: float, backward: float) -> float:
    """Exposed seconds of one micro-batch beside passes of ``forward`` and ``backward`` seconds.

    - Offloaded optimizer: gradients of the shard go down, c n.
    - Offloaded parameters: the rank's shard of the weights comes up for each gather, twice at stage 3.
    - Offloaded activations: each block's input, c T h, goes down and comes up.
    - NVMe: parameters come from the drives, which all ranks of a node share.
    """
    plan, c, pcie = setting.plan, setting.width, setting.machine.pcie
    up = down = 0.0
    if plan.offload_parameters != "none":
        rate = pcie
        if plan.offload_parameters == "nvme":
            rate = min(pcie, constant("nvme_rate") / min(plan.gpus_per_node, plan.world_size))
        up = setting.parameters * c / setting.shards / rate
    again = up if plan.zero_stage == 3 else 0.0
    if plan.offload_optimizer != "none":
        width = FP32 if setting.target.format == "fsdp2" else c
        down = setting.trainable / setting.shards * width / pcie
    acts = 0.0
    if plan.offload_activations:
        layers = len(setting.shapes.blocks) / plan.pipeline_parallel
        acts = c * setting.between * setting.arch.hidden * layers / pcie
    return exposed(up + acts, forward) + exposed(max(again + acts, down), backward)
