"""Parameters that are not trained, by patterns of their names."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import translate

from dsgen.errors import InputError, Place
from dsgen.facts.tables import nearest
from dsgen.shapes.values import Block, Shapes, Tensor

_PREFIX = "model."
"""Before which Hugging Face puts the decoder's names."""


def with_freeze(shapes: Shapes, patterns: tuple[str, ...], place: Callable[[int], Place | None]) -> Shapes:
    """The shapes with every tensor frozen that one of ``patterns`` names; trained otherwise as before.

    Names are those of dsgen/shapes/tensors.py, blocks by their number (``layers.0.self_attn.q_proj.weight``), with or
    without ``model.`` before them. ``*`` and ``?`` are as for files; a pattern that names a module means all in it. A
    pattern that names nothing is refused at ``place(index)``, and so is a model of which nothing is left to train.
    """
    if not patterns:
        return shapes
    found = [False] * len(patterns)
    matches = [_matcher(pattern) for pattern in patterns]

    def frozen(name: str) -> bool:
        hits = [match(name) for match in matches]
        for at, hit in enumerate(hits):
            found[at] = found[at] or hit
        return any(hits)

    made: dict[tuple[int, frozenset[str]], Block] = {}
    blocks = tuple(_block(block, f"layers.{layer}.", frozen, made) for layer, block in enumerate(shapes.blocks))
    outside = tuple(_tensor(tensor, frozen(tensor.name)) for tensor in shapes.outside)
    for at, pattern in enumerate(patterns):
        if not found[at]:
            known = [*_modules(shapes), *(tensor.name for tensor in shapes.outside)]
            close = nearest(pattern.removeprefix(_PREFIX), known)
            help = f"did you mean {' or '.join(close)}?" if close else f"names are such as {', '.join(known[:4])}"
            raise InputError.at(f"freeze: {pattern!r} names no parameter of this model", place(at), help)
    changed = replace(shapes, blocks=blocks, outside=outside)
    if not changed.trainable:
        raise InputError.at("freeze: nothing is left to train", place(0), "leave out a pattern")
    return changed


def leading_frozen(shapes: Shapes) -> int:
    """Blocks at the start which no gradient reaches, since nothing in them or before them is trained: nothing of them
    is kept for the backward pass, which ends behind them."""
    if shapes.trainable == shapes.parameters:
        return 0
    if any(tensor.trainable for tensor in shapes.outside if tensor.name.startswith(_BEFORE_THE_BLOCKS)):
        return 0
    for index, block in enumerate(shapes.blocks):
        if block.trainable:
            return index
    return len(shapes.blocks)


_BEFORE_THE_BLOCKS = ("embed_", "project_in")


def _matcher(pattern: str) -> Callable[[str], bool]:
    whole = re.compile(translate(pattern.removeprefix(_PREFIX)))
    inside = re.compile(translate(f"{pattern.removeprefix(_PREFIX)}.*"))
    return lambda name: whole.match(name) is not None or inside.match(name) is not None


def _block(
    block: Block, prefix: str, frozen: Callable[[str], bool], made: dict[tuple[int, frozenset[str]], Block]
) -> Block:
    """Equal layers stay one object."""
    names = frozenset(tensor.name for tensor in block.tensors if frozen(prefix + tensor.name))
    if not names:
        return block
    key = (id(block), names)
    if key not in made:
        made[key] = replace(block, tensors=tuple(_tensor(tensor, tensor.name in names) for tensor in block.tensors))
    return made[key]


def _tensor(tensor: Tensor, frozen: bool) -> Tensor:
    return replace(tensor, trainable=False) if frozen else tensor


def _modules(shapes: Shapes) -> Iterable[str]:
    """Modules of the first block and their tensors."""
    for tensor in shapes.blocks[0].tensors if shapes.blocks else ():
        yield f"layers.0.{tensor.name.rpartition('.')[0]}"
        yield f"layers.0.{tensor.name}"
