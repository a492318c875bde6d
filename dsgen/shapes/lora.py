"""LoRA (arXiv 2106.09685): the base is frozen, chosen linear layers get two thin trainable matrices."""

from collections.abc import Iterator
from dataclasses import replace

from dsgen.errors import InputError, Place
from dsgen.facts.tables import nearest
from dsgen.shapes.values import Block, Shapes, Tensor
from dsgen.spec.values import Method

# Not linear layers where they are defined: routers are plain parameters in Hugging Face's mixtures.
_ROUTER = "mlp.gate"


def with_method(shapes: Shapes, method: Method, place: Place | None = None) -> Shapes:
    """The shapes as ``method`` trains them: all of them, or adapters beside a frozen base.

    A linear layer (out, in) of rank r gets ``lora_A.weight`` (r, in) and ``lora_B.weight`` (out, r):
    r (in + out) trainable parameters, no bias, as PEFT's LoraConfig with bias="none".
    "all-linear" is, as in PEFT, every linear layer but the output head; stacked experts and routers
    are plain parameters and stay frozen. Layers are those of the decoder that dsgen generates: where
    the original fuses projections (GPT-2's c_attn), PEFT puts one pair on the fused layer instead.
    """
    if method.type == "full":
        return shapes
    known = sorted({_short(layer) for block in shapes.kinds for layer in _linear_layers(block)})
    targets = _targets(method, known, place)
    adapted = {id(block): _with_adapters(block, targets, method.rank) for block in shapes.kinds}
    notes = shapes.notes
    if any(block.is_moe for block in shapes.blocks):
        notes += ("LoRA leaves routers and stacked experts frozen: they are not linear layers",)
    return replace(
        shapes,
        blocks=tuple(adapted[id(block)] for block in shapes.blocks),
        outside=tuple(replace(tensor, trainable=False) for tensor in shapes.outside),
        notes=notes,
    )


def _targets(method: Method, known: list[str], place: Place | None) -> frozenset[str]:
    names = (method.targets,) if isinstance(method.targets, str) else method.targets
    if names == ("all-linear",):
        return frozenset(known)
    for name in names:
        if name not in known:
            close = nearest(name, known)
            help = f"did you mean {', '.join(close)}?" if close else f"one of all-linear, {', '.join(known)}"
            raise InputError.at(f"LoRA target {name!r} is no linear layer of this model's blocks", place, help)
    return frozenset(names)


def _linear_layers(block: Block) -> Iterator[str]:
    for tensor in block.tensors:
        layer, _, kind = tensor.name.rpartition(".")
        if kind == "weight" and len(tensor.shape) == 2 and layer != _ROUTER:
            yield layer


def _short(layer: str) -> str:
    return layer.rpartition(".")[2]


def _with_adapters(block: Block, targets: frozenset[str], rank: int) -> Block:
    adapted = {layer for layer in _linear_layers(block) if _short(layer) in targets}
    tensors: list[Tensor] = []
    for tensor in block.tensors:
        tensors.append(replace(tensor, trainable=False))
        layer, _, kind = tensor.name.rpartition(".")
        if kind == "weight" and layer in adapted:
            out, width = tensor.shape
            tensors.append(Tensor(f"{layer}.lora_A.weight", (rank, width)))
            tensors.append(Tensor(f"{layer}.lora_B.weight", (out, rank)))
    return Block(tuple(tensors), block.is_moe)
