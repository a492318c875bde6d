"""Token ids to train on: a flat binary file, memory-mapped, or made-up sequences."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset


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
