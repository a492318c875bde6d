"""Token ids to train on: different on every rank and in every micro-step, the same again in every step."""

from typing import Any

SEQUENCE_LENGTH = 32
_RANKS = 1 << 20  # far more than there are; keeps the seeds of ranks and micro-steps apart


def batch(torch: Any, sizes: Any, sequences: int, rank: int, micro_step: int, seed: int) -> Any:
    """``[sequences, length]`` ids. Repeating them lets the loss fall, which shows that the steps reach the weights."""
    generator = torch.Generator().manual_seed(seed + (1 + rank) + (1 + micro_step) * _RANKS)
    length = min(SEQUENCE_LENGTH, sizes.max_position_embeddings)
    return torch.randint(sizes.vocab_size, (sequences, length), generator=generator)
