"""The ladder: ways to lay out the states and activations, from the simplest to the most costly.

The order is that of what each lever costs in time and trouble, the cheapest first:

1. ZeRO stages. Stages 1 and 2 move as many bytes as plain data parallelism (2 parameters' worth a step,
   reduce-scatter and all-gather instead of one all-reduce); stage 3 moves 3, and with accumulation does so for
   every micro-batch (ZeRO paper, arXiv 1910.02054, section 7).
2. Checkpointing. Selective recomputes element-wise work only, a few percent of a step; full runs the
   forward pass twice: 4/3 of the arithmetic.
3. Offload to host memory: the optimizer step moves to the CPU, and gradients and parameters cross PCIe once a step;
   parameters offloaded cross it for every micro-batch.
4. Offload to NVMe: the same through disks of some GB/s.

Within a node that is joined by NVLink, stage 3 is cheaper than full checkpointing at stage 2: its extra
traffic hides behind compute, a third more arithmetic does not. Over slow links between nodes it can be the
other way round; this order does not look at links yet, and says so nowhere else.

FSDP2 has two of the stages and one offload. Its stage 2 keeps weights gathered from the forward to the backward
pass only, but shards them between steps as stage 3 does; CPUOffloadPolicy moves everything or nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dsgen.legality import rows_fsdp2
from dsgen.plan import Checkpointing, Device, Wishes
from dsgen.target import Format

STAGES = (0, 1, 2, 3)
CHECKPOINTING = (Checkpointing("none"), Checkpointing("selective"), Checkpointing("full"))
OFFLOAD: tuple[tuple[Device, Device], ...] = (
    # optimizer, parameters
    ("none", "none"),
    ("cpu", "none"),
    ("cpu", "cpu"),
    ("nvme", "none"),
    ("nvme", "cpu"),
    ("nvme", "nvme"),
    ("cpu", "nvme"),
    # Rare, and left out by DeepSpeed's own estimator (runtime/zero/stage3.py): parameters away, optimizer not.
    ("none", "cpu"),
    ("none", "nvme"),
)


@dataclass(frozen=True, slots=True)
class Rung:
    """One way: ZeRO stage, checkpointing, offload."""

    zero_stage: int
    checkpointing: Checkpointing
    offload_optimizer: Device
    offload_parameters: Device


def rungs(wishes: Wishes, world_size: int, format: Format = "deepspeed") -> Iterator[Rung]:
    """The ladder of a format from its foot, with every lever that a wish fixes held there.

    A wished stage is tried with whatever goes with it: the legality table judges. Otherwise only stages that can
    do a rung's offload are climbed, and on one GPU, where sharding changes nothing, only the lowest such stages; but
    also stage 2, whose step makes no two fp32 copies of all gradients as that of stage 0 does
    (dsgen/memory/temporaries.py), and which adds up in fp32 what stage 0 can't.
    """
    checkpointing = CHECKPOINTING if wishes.checkpointing is None else (wishes.checkpointing,)
    for optimizer, parameters in _offloads(wishes, rows_fsdp2.OFFLOADS if format == "fsdp2" else OFFLOAD):
        climbed = rows_fsdp2.STAGES if format == "fsdp2" else _stages(optimizer, parameters, world_size)
        for kind in checkpointing:
            for stage in climbed if wishes.zero_stage is None else (wishes.zero_stage,):
                yield Rung(stage, kind, optimizer, parameters)


def _offloads(wishes: Wishes, ladder: tuple[tuple[Device, Device], ...]) -> list[tuple[Device, Device]]:
    """Those of the ladder that meet the wishes; where none does, the wishes as they are, to be refused."""
    meeting = [
        (optimizer, parameters)
        for optimizer, parameters in ladder
        if wishes.offload_optimizer in (None, optimizer) and wishes.offload_parameters in (None, parameters)
    ]
    return meeting or [(wishes.offload_optimizer or "none", wishes.offload_parameters or "none")]


def _stages(optimizer: Device, parameters: Device, world_size: int) -> tuple[int, ...]:
    if parameters != "none" or optimizer == "nvme":
        return (3,)
    if optimizer == "cpu":
        # Stage 2 also moves the gradients to the host, which stage 1 leaves on the GPU.
        return (1, 2, 3) if world_size > 1 else (1, 2)
    return STAGES if world_size > 1 else (0, 2)
