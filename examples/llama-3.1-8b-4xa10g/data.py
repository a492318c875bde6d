"""Token ids to train on: a flat binary file, memory-mapped, or made-up sequences."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class FileTokens(Dataset[Tensor]):
    """A file of token ids, cut into sequences; 16 bits each if the vocabulary allows."""

    def __init__(self, path: Path, length: int, vocab_size: int) -> None:
        width = np.uint16 if vocab_size <= 2**16 else np.uint32
        self.tokens = np.memmap(path, dtype=width, mode="r")
        self.length = length

    def __len__(self) -> int:
        return len(self.tokens) // self.length

    def __getitem__(self, index: int) -> Tensor:
        start = index * self.length
        tokens = self.tokens[start : start + self.length]
        return torch.from_numpy(tokens.astype(np.int64))


class MadeUpTokens(Dataset[Tensor]):
    """Sequences that count up in different strides: something that can be learnt."""

    def __init__(self, length: int, vocab_size: int) -> None:
        self.length = length
        self.vocab_size = vocab_size

    def __len__(self) -> int:
        return 1 << 16

    def __getitem__(self, index: int) -> Tensor:
        stride = 1 + index % 7
        return (index + stride * torch.arange(self.length)) % self.vocab_size


def dataset(path: Path | None, length: int, vocab_size: int) -> Dataset[Tensor]:
    if path is None:
        return MadeUpTokens(length, vocab_size)
    return FileTokens(path, length, vocab_size)


class ResumableSampler(DistributedSampler[int]):
    """Each rank's share of the data, shuffled anew each epoch, from any position on."""

    start = 0

    def __iter__(self) -> Iterator[int]:
        return islice(super().__iter__(), self.start, None)


def micro_batches(
    data: Dataset[Tensor], micro_batch: int, consumed: int, seed: int, **options: Any
) -> Iterator[Tensor]:
    """Endless micro-batches of this rank, after as many as were consumed before."""
    sampler = ResumableSampler(data, seed=seed, drop_last=True)
    per_epoch = sampler.num_samples // micro_batch
    if per_epoch == 0:
        raise SystemExit(f"{len(sampler)} sequences a rank: fewer than a micro-batch")
    loader = DataLoader(data, micro_batch, sampler=sampler, drop_last=True, **options)
    epoch, skipped = divmod(consumed, per_epoch)
    while True:
        sampler.set_epoch(epoch)
        sampler.start = skipped * micro_batch
        yield from loader
        epoch, skipped = epoch + 1, 0
