"""One micro-batch on the slowest pipeline stage: seconds of each part, forwards and backwards."""

from dataclasses import dataclass

from dsgen.facts.constants import constant
from dsgen.steptime.block import block_cost, recomputed
from dsgen.steptime.head import head_cost
from dsgen.steptime.parallel import between_stages, per_layer
from dsgen.steptime.setting import Setting
from dsgen.steptime.sharding import copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Seconds of one micro-batch."""

    forward: float
    backward: float
    recomputed: float
    communication: float
    """Inside layers and between stages, exposed."""
    host: float
    """That the host takes to launch all of it."""
    head: float
    """Share of the above that only the last stage has."""

    @property
    def gpu(self) -> float:
        return self.forward + self.backward + self.recomputed + self.communication


def passes_of(setting: Setting) -> Passes:
    """Blocks of one stage, L / p of them, and the head, which the last stage has: it is the slowest."""
    share = 1 / setting.plan.pipeline_parallel
    forward = backward = again = talk = launches = 0.0
    for block, layers in setting.kinds:
        count = layers * share
        cost = block_cost(setting, block)
        whole = cost.all
        seconds, kernels = recomputed(setting, cost)
        there, back = per_layer(setting, cost, moe=block.is_moe)
        forward += count * whole.forward
        # Frozen blocks at the start: the backward pass ends behind them.
        reached = share * (layers - setting.idle.get(id(block), 0))
        backward += reached * whole.backward
        again += reached * seconds
        talk += count * there + reached * (back + there * _talked_again(setting))
        launches += count * whole.forward_launches + reached * (whole.backward_launches + kernels)
    head = head_cost(setting)
    out, into = copies(setting)
    talk += between_stages(setting)
    launches += head.forward_launches + head.backward_launches
    return Passes(
        forward=forward + head.forward + out,
        backward=backward + head.backward + into,
        recomputed=again,
        communication=talk,
        host=_host(setting, launches, again / (forward + backward)),
        head=head.forward + head.backward,
    )


def _host(setting: Setting, launches: float, again: float) -> float:
    """Seconds of the host for one micro-batch; ``again``: recomputation over both passes.

    - host_launch for each kernel; compiled code takes host_compiled of that.
    - Sharding's hooks in each pass: host_layer_zero3 for DeepSpeed's stage 3, host_unit_fsdp for a unit of FSDP, of
      which the root is one; the passes are forwards, backwards and, where it is run again, recomputation.
    - Megatron-Core: host_layer_megatron for both passes of a layer, in place of its kernels; host_ring for each step of
      context parallelism, host_chunk for each chunk of a pipeline stage.
    - All by the age of the host (machine_of).
    """
    plan = setting.plan
    layers = len(setting.shapes.blocks) / plan.pipeline_parallel
    runs = 3 if again else 2
    if setting.megatron:
        seconds = layers * constant("host_layer_megatron") * (1 + again)
        seconds += layers * constant("host_ring") * (plan.context_parallel - 1)
        seconds += constant("host_chunk") * plan.virtual_stages * (plan.pipeline_parallel > 1)
    else:
        seconds = launches * constant("host_launch")
        if setting.target.format == "deepspeed" and plan.zero_stage == 3:
            seconds += layers * constant("host_layer_zero3") * runs
        elif setting.target.format in ("fsdp1", "fsdp2") and setting.shards > 1:
            seconds += (layers + 1) * constant("host_unit_fsdp") * runs
    if setting.training.compile:
        seconds *= constant("host_compiled")
    return seconds * setting.machine.host


def _talked_again(setting: Setting) -> float:
    """Share of a layer's forward traffic that recomputation repeats: all of it; selective checkpointing keeps what is
    reduced and scattered, and gathers again."""
    checkpointing = setting.plan.checkpointing
    match checkpointing.kind:
        case "full":
            return 1.0
        case "every":
            return 1 / checkpointing.every
        case "selective":
            return 0.5
        case _:
            return 0.0
