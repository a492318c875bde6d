"""The value that the formulas of this folder return, and what they are told."""

from dataclasses import dataclass

from dsgen.memory.activations.kernels import Kernels
from dsgen.shapes.values import Architecture, Block
from dsgen.spec.values import Attention

_FP32 = 4


@dataclass(frozen=True, slots=True)
class Saved:
    """Bytes per token of one part of a block; ``first + second`` are two parts in the order of the forward pass."""

    kept: float
    """Saved for the backward pass without checkpointing."""
    outputs: float
    """Outputs of matrix products and of the attention kernel: what selective checkpointing keeps."""
    transient: float = 0
    """Most that is there while the part runs backwards, beyond what it keeps."""
    later: tuple[float, float, float] = (0, 0, 0)
    """Of a whole block, most that is there of it while these run backwards: the first matrices of its MLP, the core of
    attention, the projections before that."""

    def __add__(self, other: "Saved") -> "Saved":
        return Saved(
            self.kept + other.kept,
            self.outputs + other.outputs,
            # What runs last in the forward pass runs first in the backward pass, and is gone when the rest runs.
            max(other.transient, self.transient - other.kept),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One block under one way of training it."""

    arch: Architecture
    width: int
    """Bytes of a compute element (c)."""
    attention: Attention
    sequence_length: int
    """Keys that one query sees (s); a sliding window does not shorten what eager attention stores."""
    kernels: Kernels
    trained: frozenset[str]
    """Linear layers and norms whose weight, or whose adapter, gets a gradient, by their short name."""
    lora_rank: int
    """0 without adapters."""
    lora_dropout: bool
    """Adapters drop parts of their input."""
    adapter_width: int = 0
    """Bytes of an adapter's weight where it is wider than c: its input is cast; 0 where it is not."""
    autocast: bool = False
    """What is cast for an adapter is cast back to c before its matrix product."""
    inputs_kept: bool = False
    """Every linear layer keeps its input: bitsandbytes' 4-bit product did until 0.43.2
    (autograd/_functions.py:MatMul4Bit)."""
    fused: frozenset[str] = frozenset()
    """Kernels that keep less: norm, mlp, tiled_mlp."""
    ulysses: int = 1
    """Ranks over which Ulysses splits each sequence."""
    tiles: int = 1
    """Parts into which a tiled MLP cuts the tokens of one rank."""

    wide: bool = False
    """Weights are fp32 and autocast casts them, so what lies between the layers is fp32: every linear layer keeps a
    cast of its own of what it reads."""

    @property
    def between(self) -> int:
        """Bytes of an element of the residual stream."""
        return _FP32 if self.wide else self.width

    def trains(self, *names: str) -> bool:
        """Whether one of these layers is trained, itself or by an adapter."""
        return not self.trained.isdisjoint(names)

    def reads(self, *names: str) -> bool:
        """Whether one of these layers needs its input, as it is, for a weight gradient."""
        copied = bool(self.lora_rank) and (self.lora_dropout or self.adapter_width > 0)
        return self.inputs_kept or (not copied and self.trains(*names))

    def adapters(self, width: float, *names: str) -> float:
        """Saved by the adapters of these layers, whose input has ``width`` features: the output of lora_A for lora_B,
        a r each, and, with dropout or where it is cast, the adapter's own input, a width each, and a mask of width with
        dropout. a: bytes of what the adapter multiplies, those of its weight, under autocast c. PEFT casts the input of
        each adapter by itself (tuners/lora/layer.py:_cast_input_dtype), so layers with one input keep one copy each."""
        if not self.lora_rank:
            return 0
        a = self.adapter_width if self.adapter_width and not self.autocast else self.width
        own = a * width if self.lora_dropout or self.adapter_width else 0
        if self.lora_dropout:
            own += width
        return (a * self.lora_rank + own) * len(self.trained.intersection(names))


def trained_layers(block: Block) -> frozenset[str]:
    """Short names of the block's layers that are trained, directly or through an adapter."""
    names = set()
    for tensor in block.tensors:
        if tensor.trainable:
            layer = tensor.name.removesuffix(".weight").removesuffix(".bias")
            layer = layer.removesuffix(".lora_A").removesuffix(".lora_B").removesuffix("_bias")
            names.add(layer.removeprefix("self_attn."))
    return frozenset(names)
