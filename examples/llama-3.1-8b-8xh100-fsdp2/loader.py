"""Each rank's share of the data, as the micro-batches of one optimizer step at a time."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice

import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, stack
from torch.utils.data import DataLoader, Dataset, DistributedSampler

IGNORE_INDEX = -100
Batch = tuple[Tensor, Tensor]


def with_targets(sequences: list[Tensor]) -> Batch:
    """Token ids, and the id to predict at each position; what is IGNORE_INDEX is not.

    Sequences of different lengths are padded here, their padding with IGNORE_INDEX.
    """
    tokens = stack(sequences)
    return tokens, F.pad(tokens, (0, 1), value=IGNORE_INDEX)[:, 1:]


class ResumableSampler(DistributedSampler[int]):
    """Each rank's share of the data, shuffled anew each epoch, from any position on."""

    start = 0

    def __iter__(self) -> Iterator[int]:
        return islice(super().__iter__(), self.start, None)


@dataclass
class Progress:
    """Where the training stands."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    sequences: int = 0
    """Taken of this epoch, by all ranks together."""

    def state_dict(self) -> dict[str, int]:
        return asdict(self)

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step, self.epoch = state["step"], state["epoch"]
        self.sequences = state["sequences"]


def windows(
    data: Dataset[Tensor],
    progress: Progress,
    micro_batch: int,
    accumulation: int,
    *,
    seed: int,
    num_workers: int,
    pin_memory: bool,
) -> Iterator[list[Batch]]:
    """Endless lists of ``accumulation`` micro-batches; moves ``progress`` along.

    The last one of an epoch holds what is left: fewer micro-batches, the last perhaps
    smaller. Ranks always get equally many.
    """
    world = dist.get_world_size()
    sampler = ResumableSampler(data, seed=seed, drop_last=True)
    if sampler.num_samples == 0:
        raise SystemExit(f"fewer sequences than the {world} ranks")
    loader = DataLoader(
        data,
        micro_batch,
        sampler=sampler,
        collate_fn=with_targets,
        num_workers=num_workers,
        pin_memory=pin_memory,
    )
    while True:
        sampler.set_epoch(progress.epoch)
        sampler.start = progress.sequences // world
        batches = iter(loader)
        while window := list(islice(batches, accumulation)):
            progress.sequences += world * sum(len(tokens) for tokens, _ in window)
            yield window
        progress.epoch, progress.sequences = progress.epoch + 1, 0
