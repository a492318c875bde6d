"""Activations of every layer under the plan's checkpointing, bytes of one micro-batch."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import ceil

from dsgen.memory import auto_tp
from dsgen.memory.activations.block import block
from dsgen.memory.activations.kernels import kernels_of
from dsgen.memory.activations.saved import Layer, Saved, trained_layers
from dsgen.memory.derived import derived
from dsgen.memory.setting import FP32, Setting
from dsgen.shapes.freeze import leading_frozen
from dsgen.shapes.values import Block


@dataclass(frozen=True, slots=True)
class LayerActivations:
    """Bytes of one layer."""

    kept: int
    """From its forward to its backward pass."""
    extra: int
    """In addition while it runs backwards: what is recomputed, and transients."""
    later: tuple[int, int, int] = (0, 0, 0)
    """The same for Saved.later: less than nothing where the layer keeps what is gone by then."""


@dataclass(frozen=True)
class Activations:
    """Of all layers, in order."""

    layers: tuple[LayerActivations, ...]

    @cached_property
    def upto(self) -> list[int]:
        """Bytes kept of each layer and those before it."""
        return list(accumulate([layer.kept for layer in self.layers]))

    @property
    def kept(self) -> int:
        """Bytes kept of all."""
        return self.upto[-1] if self.layers else 0


def activations(setting: Setting) -> Activations:
    """Each layer in order, t tokens:

    - none: kept = all that autograd saves; extra = the backward transient.
    - full: kept = the block's input c h t (transformers and torch.utils.checkpoint keep it alone); extra = all
      that autograd saves of one block, and the transient.
    - selective: kept = input, outputs of matrix products and of the attention kernel; extra as with full,
      less what of it is kept.
    - every n: layers 0, n, 2n, ... as full, the others as none.

    Frozen blocks at the start keep nothing: the backward pass ends behind them.
    """
    made = _all_layers(setting)
    idle = derived(setting.shapes, "leading frozen", lambda: leading_frozen(setting.shapes))
    return Activations((LayerActivations(0, 0),) * idle + made[idle:] if idle else made)


def _all_layers(setting: Setting) -> tuple[LayerActivations, ...]:
    """As if a gradient reached each of them."""
    checkpointing, order = setting.plan.checkpointing, setting.shapes.order
    kinds = [_one(setting, saved) for saved in _saved(setting)]
    if checkpointing.kind == "every":
        every = checkpointing.every
        return tuple(kinds[kind][index % every == 0] for index, kind in enumerate(order))
    position = ("none", "full", "selective").index(checkpointing.kind)
    chosen = [kind[position] for kind in kinds]
    return tuple([chosen[kind] for kind in order])


def _saved(setting: Setting) -> list[Saved]:
    """Of each kind of block. Named in the key: all that _layer reads."""
    plan, format = setting.plan, setting.target.format
    ranks = (plan.tensor_parallel, plan.context_parallel, plan.ulysses)
    key = ("saved", setting.training, setting.width, setting.sequence_length, format, ranks)
    kinds = setting.shapes.kinds
    return derived(setting.shapes, key, lambda: [block(_layer(setting, each), moe=each.is_moe) for each in kinds])


def _one(setting: Setting, saved: Saved) -> tuple[LayerActivations, LayerActivations, LayerActivations]:
    t = setting.tokens
    entry = (FP32 if is_wide(setting) else setting.width) * setting.shapes.architecture.hidden
    none = _layer_of(t, saved.kept, saved.transient, saved, 0)
    whole = saved.kept + saved.transient
    entered = 0 if setting.plan.offload_activations else entry
    full = _layer_of(t, entered, whole, saved, entered)
    outputs = entry + saved.outputs
    if setting.training.code.library == "torchtitan":
        outputs -= _every_second_product(setting) + _unlisted_attention(setting)
    recomputed = max(0, saved.kept - outputs)
    kept = min(outputs, saved.kept + entry)
    return none, full, _layer_of(t, kept, recomputed + saved.transient, saved, entry)


def _layer_of(tokens: int, kept: float, extra: float, saved: Saved, entry: float) -> LayerActivations:
    """From bytes per token; ``entry``: of its input, where that is kept for its recomputation."""
    first, core, last = (round((entry + there - kept) * tokens) for there in saved.later)
    return LayerActivations(round(kept * tokens), round(extra * tokens), (first, core, last))


def _layer(setting: Setting, each: Block) -> Layer:
    arch, method, code = setting.shapes.architecture, setting.training.method, setting.training.code
    if auto_tp.acts(setting.plan, setting.target):
        arch = auto_tp.architecture_of_rank(arch, setting.plan.tensor_parallel)
    kernels = kernels_of(arch, code.library)
    if code.dropout is not None:
        kernels = replace(kernels, dropout=code.dropout)
    return Layer(
        arch=arch,
        width=setting.width,
        attention="eager" if kernels.in_steps else setting.training.attention,
        sequence_length=setting.sequence_length,
        kernels=kernels,
        trained=trained_layers(each),
        lora_rank=method.rank if method.type == "lora" else 0,
        lora_dropout=method.type == "lora" and method.dropout > 0,
        adapter_width=_adapter_width(setting),
        autocast=code.autocast,
        wide=is_wide(setting),
        inputs_kept=method.quantization is not None and code.library == "litgpt",
        fused=code.fused,
        ulysses=setting.plan.ulysses,
        tiles=_tiles(setting),
    )


def _tiles(setting: Setting) -> int:
    """Tiles of about h tokens, ceil(s / h) of one rank's s, as DeepSpeed's and ArcticTraining's examples cut them."""
    plan = setting.plan
    return ceil(setting.sequence_length / (plan.context_parallel * plan.ulysses * setting.shapes.architecture.hidden))


def is_wide(setting: Setting) -> bool:
    """Whether autocast casts fp32 weights: plain torch's way to train all of them in 16 bit. The embedding's output is
    fp32 then, and so is all that is added to it."""
    code, method = setting.training.code, setting.training.method
    whole = method.type == "full" and not code.weights_in_compute_type
    return setting.target.format == "ddp" and setting.mixed and whole


def _adapter_width(setting: Setting) -> int:
    """PEFT keeps adapters in fp32 beside 16-bit weights; DeepSpeed and FSDP2 as dsgen writes them have one type."""
    own = setting.target.format in ("ddp", "fsdp1") and setting.training.code.library == "transformers"
    return FP32 if own and setting.mixed and not setting.training.code.weights_in_compute_type else 0


def _every_second_product(setting: Setting) -> float:
    """Bytes per token that torchtitan's selective_op recomputes of a Llama block: it keeps the first, third, ... matrix
    product (torchtitan/distributed/activation_checkpoint.py:_get_custom_policy), so of q, k, v, o, gate, up and down it
    makes k, o and up anew."""
    arch = setting.shapes.architecture
    return setting.width * (arch.kv_heads * arch.head_dim + arch.hidden + arch.intermediate)


def _unlisted_attention(setting: Setting) -> float:
    """Bytes per token of the attention kernel's output and statistics that selective_op makes anew on Blackwell: there
    torchtitan takes cuDNN's kernel, which its list of what is kept does not name (pytorch/torchtitan#1196, which went
    from 46.39 to 44.59 GiB; parallelize_llama.py:_save_list)."""
    arch = setting.shapes.architecture
    if (setting.hardware.gpu.cuda or 0) < _BLACKWELL:
        return 0
    return setting.width * arch.heads * arch.head_dim + FP32 * arch.heads


_BLACKWELL = 10.0
"""Compute capability."""
