"""Token ids to train on: different on every rank and in every micro-step."""

from typing import Any

SEQUENCE_LENGTH = 32
IGNORE_INDEX = -100
# Far more than there are; they keep the seeds of ranks, micro-steps and steps apart.
_RANKS = 1 << 20
_MICRO_STEPS = 1 << 20


def batch(torch: Any, sizes: Any, sequences: int, rank: int, micro_step: int, seed: int, step: int = 0) -> Any:
    """``[sequences, length]`` ids. Without ``step`` they repeat, and the loss falls if the steps reach the weights."""
    seed += (1 + rank) + (1 + micro_step) * _RANKS + step * _RANKS * _MICRO_STEPS
    generator = torch.Generator().manual_seed(seed)
    length = min(SEQUENCE_LENGTH, sizes.max_position_embeddings)
    return torch.randint(sizes.vocab_size, (sequences, length), generator=generator)


def targets_of(torch: Any, tokens: Any, uneven: bool) -> Any:
    """The id to predict at each position; ``uneven`` leaves out some: more in one sequence than in another."""
    targets = torch.nn.functional.pad(tokens, (0, 1), value=IGNORE_INDEX)[:, 1:]
    if not uneven:
        return targets
    return targets.masked_fill((targets % 7 == 0) | (targets < 40 * (targets[:, :1] % 3)), IGNORE_INDEX)
