"""The ladder: ways to lay out the states and activations, from the simplest to the most involved.

It says which of two plans that are as fast is the simpler one, the simplest first:

1. ZeRO stages, each of which takes one more thing apart; after stage 3 hpZ, a second copy of the weights in each node.
2. Checkpointing, which recomputes: selective less, full more.
3. Offload to host memory: the optimizer step moves to the CPU, and gradients and parameters cross PCIe.
4. Offload to NVMe: the same through disks of some GB/s.
5. Ranks that are split (tensor parallelism, Ulysses, shard groups): they need code and launchers that know it.

How fast each is, is not the ladder's to say (dsgen/steptime).

FSDP2 has two of the stages and one offload. Its stage 2 keeps weights gathered from the forward to the backward
pass only, but shards them between steps as stage 3 does; CPUOffloadPolicy moves everything or nothing. Gradients are
reduced once a step, or, kept sharded in between, after every micro-batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dsgen.legality import rows_fsdp2
from dsgen.plan import Checkpointing, Device, Wishes, ZeroPP
from dsgen.planner.ranks import PLAIN, Ranks
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
    """One way: ZeRO stage, checkpointing, offload, and how the ranks are split."""

    zero_stage: int
    checkpointing: Checkpointing
    offload_optimizer: Device
    offload_parameters: Device
    ranks: Ranks = PLAIN
    zeropp: ZeroPP = ZeroPP()
    reduce_each_micro_batch: bool = False

    @property
    def offloads(self) -> bool:
        return (self.offload_optimizer, self.offload_parameters) != ("none", "none")


def rungs(
    wishes: Wishes,
    world_size: int,
    format: Format = "deepspeed",
    *,
    ranks: Sequence[Ranks] = (PLAIN,),
    node: int | None = None,
) -> Iterator[Rung]:
    """The ladder of a format from its foot, with every lever that a wish fixes held there.

    ``node``: GPUs of a node where there are several nodes, so that hpZ is worth a try.
    A wished stage is tried with whatever goes with it: the legality table judges. Otherwise only stages that can
    do a rung's offload are climbed, and on one GPU, where sharding changes nothing, only the lowest such stages; but
    also stage 2, whose step makes no two fp32 copies of all gradients as that of stage 0 does
    (dsgen/memory/temporaries.py), and which adds up in fp32 what stage 0 can't.
    """
    checkpointing = CHECKPOINTING if wishes.checkpointing is None else (wishes.checkpointing,)
    offloads = _offloads(wishes, rows_fsdp2.OFFLOADS if format == "fsdp2" else OFFLOAD)
    # Among plans that split ranks, offload is more trouble than splitting over more of them.
    for flight in (ranks[:1], ranks[1:]):
        for (optimizer, parameters), split in product(offloads, flight):
            climbed = rows_fsdp2.STAGES if format == "fsdp2" else _stages(optimizer, parameters, world_size)
            stages = climbed if wishes.zero_stage is None else (wishes.zero_stage,)
            for kind, stage in product(checkpointing, stages):
                for zeropp in _zeropp(wishes, stage, format, None if split.model > 1 else node):
                    for each in _reductions(wishes, format):
                        yield Rung(stage, kind, optimizer, parameters, split, zeropp, each)


def _zeropp(wishes: Wishes, stage: int, format: Format, node: int | None) -> Iterator[ZeroPP]:
    """What rounds (qwZ, qgZ) is only taken where it is wished: it changes what is trained."""
    yield wishes.zeropp or ZeroPP()
    if wishes.zeropp is None and stage == 3 and format == "deepspeed" and node is not None:
        yield ZeroPP(secondary_partition=node)


def _reductions(wishes: Wishes, format: Format) -> tuple[bool, ...]:
    if wishes.reduce_each_micro_batch is not None:
        return (wishes.reduce_each_micro_batch,)
    return (False, True) if format == "fsdp2" else (False,)


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
