"""Plain numbers become shapes: what is not given is taken from the nearest Llama, and said."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd, log

from dsgen.errors import InputError, Place
from dsgen.facts.models import Model, models
from dsgen.shapes.tensors import MOST_LAYERS, build
from dsgen.shapes.values import Architecture, Shapes
from dsgen.spec.values import ModelSizes

# Models of Llama's shape whose proportions a model of about their size inherits.
LADDER = (
    "smollm2-135m",
    "smollm2-360m",
    "tinyllama-1.1b",
    "llama-3.2-3b",
    "llama-2-7b",
    "llama-2-13b",
    "llama-2-70b",
    "llama-3.1-405b",
)
TOLERANCE = 0.10
"""A stated number of parameters may differ from that of the sizes by this share."""
_WIDTH_STEP = 128
"""Widths are multiples of this, as tensor cores and tensor parallelism like them."""
_SAME_DEPTH = 0.15
"""The MLP's width makes up for this much before the depth leaves that of the rung."""


_MLP_PROPORTIONS = (1, 8)
"""MLP width over hidden size of every dense decoder in the table lies between these."""

PlaceOf = Callable[[str], Place | None]


@dataclass(frozen=True, slots=True)
class _Guess:
    """The sizes so far and what of them was inferred."""

    arch: Architecture
    inferred: tuple[str, ...]
    like: str


def from_sizes(sizes: ModelSizes, place: PlaceOf = lambda _key: None) -> Shapes:
    """Shapes of a decoder with these sizes; ``place(key)`` says where ``model.<key>`` stands.

    Without ``parameters``, ``layers`` and ``hidden`` are needed. With it, whatever is missing comes
    from the rung of the ladder nearest in size (ratio, not difference); then depth, and last the
    MLP's width, are solved so that the count meets it:

        N = 2Vh (Vh if tied) + L (2hq + 2hk + m h i + 2h) + h,   m = 3 gated, 2 not

    Given sizes are never changed: they win over ``parameters`` within 10 %, beyond that it is an error.
    """
    if sizes.parameters is None:
        for key in ("layers", "hidden"):
            if getattr(sizes, key) is None:
                raise InputError.at(
                    f"model by sizes needs {key}", place(key), "give parameters (7B), or at least layers and hidden"
                )
    guess = _guess(sizes, place)
    if guess.arch.layers > MOST_LAYERS:
        key = "parameters" if sizes.layers is None else "layers"
        raise InputError.at(f"{guess.arch.layers} layers are more than {MOST_LAYERS}", place(key), "correct the sizes")
    shapes = build(_name(sizes, guess), guess.arch, stated_parameters=sizes.parameters)
    return replace(shapes, notes=_notes(sizes, guess, shapes, place))


def _guess(sizes: ModelSizes, place: PlaceOf) -> _Guess:
    rung = _rung(sizes)
    vocab = sizes.vocab or rung.vocab
    tied = rung.tied if sizes.tied is None else sizes.tied
    hidden = sizes.hidden or _hidden(sizes, rung, vocab, tied, place)
    heads, kv_heads, head_dim = _heads(sizes, rung, hidden, place)
    mlp = sizes.mlp or "swiglu"
    arch = Architecture(
        family="llama",
        hf_architecture="LlamaForCausalLM",
        layer_class="LlamaDecoderLayer",
        layers=sizes.layers or 1,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=sizes.intermediate or _usual_intermediate(hidden, mlp, rung),
        vocab=vocab,
        tied=tied,
        mlp=mlp,
        max_positions=sizes.max_positions,
    )
    if sizes.parameters is not None:
        arch = _solve(arch, sizes, rung, sizes.parameters)
    keys = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "tied")
    return _Guess(arch, tuple(key for key in keys if getattr(sizes, key) is None), rung.name)


def _rung(sizes: ModelSizes) -> Model:
    """The ladder's model nearest in size; without ``parameters``, nearest in hidden size."""
    ladder = [models()[name] for name in LADDER]
    if sizes.parameters is not None:
        stated = sizes.parameters
        return min(ladder, key=lambda model: abs(log(model.parameters / stated)))
    hidden = sizes.hidden or 1
    return min(ladder, key=lambda model: abs(log(model.hidden / hidden)))


def _hidden(sizes: ModelSizes, rung: Model, vocab: int, tied: bool, place: PlaceOf) -> int:
    """The rung's width; narrower where the embeddings alone would take more than a third of the model."""
    if sizes.heads and (sizes.head_dim or rung.hidden % sizes.heads):
        return sizes.heads * (sizes.head_dim or rung.head_dim)
    assert sizes.parameters is not None
    copies = 1 if tied else 2
    widest = sizes.parameters // (3 * copies * vocab)
    if sizes.layers:
        # 12 h^2 a layer (4 h^2 attention, 8 h^2 MLP), the proportions of nearly every decoder.
        widest = min(widest, int((sizes.parameters / (12 * sizes.layers)) ** 0.5))
        step = _WIDTH_STEP if widest >= _WIDTH_STEP else 16
        return max(step, widest // step * step)
    if rung.hidden <= widest:
        return rung.hidden
    if widest < 64:
        raise InputError.at(
            f"{sizes.parameters:,} parameters are too few for a vocabulary of {vocab:,}",
            place("parameters"),
            "give a smaller vocab, or hidden and layers",
        )
    return widest // 64 * 64


def _heads(sizes: ModelSizes, rung: Model, hidden: int, place: PlaceOf) -> tuple[int, int, int]:
    same = hidden == rung.hidden
    head_dim = sizes.head_dim or (rung.head_dim if same and not sizes.heads else None)
    heads = sizes.heads or (rung.heads if same and head_dim == rung.head_dim else None)
    if heads is None:
        width = head_dim or next(width for width in (128, 64, 32, 16, 8, 4, 2, 1) if hidden % width == 0)
        heads = max(1, hidden // width)
        head_dim = width
    if head_dim is None:
        if hidden % heads:
            raise InputError.at(
                f"hidden {hidden} is no multiple of heads {heads}", place("heads"), "choose a divisor, or give head_dim"
            )
        head_dim = hidden // heads
    if head_dim % 2:
        raise InputError.at(
            f"heads of {head_dim} elements cannot be rotated: RoPE turns pairs",
            place("head_dim" if sizes.head_dim else "heads" if sizes.heads else "hidden"),
            "choose hidden and heads so that hidden / heads is even, or give an even head_dim",
        )
    grouped = rung.kv_heads if same and heads == rung.heads else heads
    kv_heads = sizes.kv_heads or grouped
    if heads % kv_heads:
        raise InputError.at(
            f"heads {heads} is no multiple of kv_heads {kv_heads}",
            place("kv_heads"),
            f"write a divisor: {gcd(heads, kv_heads)}, say",
        )
    return heads, kv_heads, head_dim


def _usual_intermediate(hidden: int, mlp: str, rung: Model) -> int:
    """The rung's width; elsewhere 8h/3 gated and 4h not, both 8 h^2 weights (Llama, arXiv 2302.13971)."""
    gated = mlp in ("swiglu", "geglu")
    if gated and hidden == rung.hidden:
        return rung.intermediate
    return _up(8 * hidden / 3) if gated else 4 * hidden


def _solve(arch: Architecture, sizes: ModelSizes, rung: Model, parameters: int) -> Architecture:
    """Depth, then MLP width, so that the count meets ``parameters``; what is given stays."""
    one = build("", replace(arch, layers=1))
    outside = sum(tensor.numel for tensor in one.outside)
    if sizes.layers is None:
        depth = (parameters - outside) / one.largest_block
        if not sizes.intermediate:
            # The rung's own depth where it is about right, else an even one, which splits into pipeline stages.
            depth = rung.layers if abs(depth / rung.layers - 1) <= _SAME_DEPTH else max(2, 2 * round(depth / 2))
        arch = replace(arch, layers=max(1, round(depth)))
    if sizes.intermediate is None:
        matrices = 3 if arch.gated else 2
        without = one.largest_block - matrices * arch.hidden * arch.intermediate
        width = ((parameters - outside) / arch.layers - without) / (matrices * arch.hidden)
        step = _WIDTH_STEP if arch.hidden >= 1024 else 16
        # Beyond these the given sizes and the stated number contradict each other, which the caller says.
        narrowest, widest = (share * arch.hidden for share in _MLP_PROPORTIONS)
        width = min(max(width, narrowest), widest)
        arch = replace(arch, intermediate=max(step, round(width / step) * step))
    return arch


def _up(width: float) -> int:
    """Up to the next multiple of the step."""
    return -int(-width // _WIDTH_STEP) * _WIDTH_STEP


def _name(sizes: ModelSizes, guess: _Guess) -> str:
    if sizes.parameters is None:
        return f"decoder-{guess.arch.layers}x{guess.arch.hidden}"
    billions = sizes.parameters / 1e9
    return f"decoder-{billions:g}b" if billions >= 1 else f"decoder-{sizes.parameters / 1e6:g}m"


def _notes(sizes: ModelSizes, guess: _Guess, shapes: Shapes, place: PlaceOf) -> tuple[str, ...]:
    notes = []
    if guess.inferred:
        values = ", ".join(f"{key} {getattr(guess.arch, key)}" for key in guess.inferred)
        notes.append(f"model shape inferred after {guess.like}: {values}")
    stated = sizes.parameters
    if stated is not None and stated != shapes.parameters:
        off = shapes.parameters / stated - 1
        more = "more" if off > 0 else "fewer"
        words = f"{shapes.parameters:,} parameters, {abs(off):.1%} {more} than the {stated:,} stated"
        if abs(off) > TOLERANCE:
            raise InputError.at(
                f"the sizes give {words}",
                place("parameters"),
                f"write parameters: {shapes.parameters}, leave it out, or correct the sizes",
            )
        notes.append(f"the model has {words}; the sizes count")
    return tuple(notes)
