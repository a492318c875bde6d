"""The vision tower and projector of a vision-language model."""

from collections.abc import Iterator
from dataclasses import replace

from dsgen.facts.towers import TEXT, towers
from dsgen.shapes.values import Architecture, Shapes, Tensor

PREFIX = "vision."
"""Before every name of these tensors."""


def with_tower(shapes: Shapes) -> Shapes:
    """The decoder with tower and projector beside it, both frozen: what is fine-tuned is the text part."""
    tensors = tuple(_tensors(shapes.architecture))
    size = sum(tensor.numel for tensor in tensors)
    notes = (
        *shapes.notes,
        f"vision tower and projector ({size / 1e6:.0f}M parameters) are frozen; image tokens count as tokens of the "
        "sequence, and the tower's own passes are in neither memory nor time",
    )
    return replace(shapes, outside=(*shapes.outside, *tensors), notes=notes)


def has_tower(shapes: Shapes) -> bool:
    """Whether it has more than a decoder."""
    return any(tensor.name.startswith(PREFIX) for tensor in shapes.outside)


def _tensors(arch: Architecture) -> Iterator[Tensor]:
    for tensor in towers()[arch.hf_architecture]:
        shape = tuple(arch.hidden if size == TEXT else int(size) for size in tensor.shape)
        for layer in range(tensor.copies):
            yield Tensor(PREFIX + tensor.name.replace("{n}", str(layer)), shape, trainable=False)
