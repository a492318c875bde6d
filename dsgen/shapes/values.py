"""The tensors of a model: what the ledger, the writers and the planner know of it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

# Vocabulary of the docstrings: h hidden, q = heads x head_dim, k = kv_heads x head_dim,
# i intermediate, V vocab, s sequence length, b micro-batch, L layers.


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """Mixture of experts; see the columns of dsgen/facts/models.csv."""

    experts: int
    top_k: int
    intermediate: int
    shared: int = 0
    shared_intermediate: int | None = None
    first_dense_layers: int = 0
    layer_step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """Multi-head latent attention (DeepSeek): ranks of the low-rank projections and head widths."""

    q_lora_rank: int
    """0: the query is projected directly."""
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder's hyper-parameters, by the names of Hugging Face's config.json where there is one."""

    family: str
    """llama, qwen2, gpt2, ...: decides the decoder that is generated and which kernels exist."""
    hf_architecture: str
    """The Hugging Face class, for example LlamaForCausalLM."""
    layer_class: str
    """The block that is wrapped and checkpointed, for example LlamaDecoderLayer."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool
    """Input and output embedding share storage."""
    mlp: str = "swiglu"
    """swiglu, geglu (three matrices), gelu, relu (two)."""
    norm: str = "rmsnorm"
    norms_per_layer: int = 2
    attention_bias: str = "none"
    """none, all, qkv (no output bias), o (output bias only), qvo (no key bias)."""
    mlp_bias: bool = False
    positional: str = "rope"
    """rope, learned, alibi, relative."""
    max_positions: int | None = None
    qk_norm: str | None = None
    """head, full or None."""
    sliding_window: int | None = None
    native_dtype: str | None = None
    """Type of pre-training: bf16, fp16, fp32, fp8."""
    moe: Moe | None = None
    mla: Mla | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    """Switches of single families (lm_bias, embed_norm, pos_offset, ...), as in models.csv."""

    @property
    def gated(self) -> bool:
        """Whether the MLP has a gate: three matrices instead of two."""
        return self.mlp in ("swiglu", "geglu")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One parameter tensor, named as the generated decoder names it, relative to its block."""

    name: str
    shape: tuple[int, ...]
    trainable: bool = True

    @property
    def numel(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Block:
    """One decoder layer."""

    tensors: tuple[Tensor, ...]
    is_moe: bool = False

    @cached_property
    def parameters(self) -> int:
        return sum(tensor.numel for tensor in self.tensors)

    @cached_property
    def trainable(self) -> int:
        return sum(tensor.numel for tensor in self.tensors if tensor.trainable)

    @cached_property
    def largest(self) -> int:
        """Elements of the largest tensor."""
        return max((tensor.numel for tensor in self.tensors), default=0)

    @cached_property
    def largest_trainable(self) -> int:
        """Elements of the largest trained tensor; 0 if none is."""
        return max((tensor.numel for tensor in self.tensors if tensor.trainable), default=0)


@dataclass(frozen=True)
class Shapes:
    """All parameter tensors: the blocks in order, and what stands outside them."""

    name: str
    architecture: Architecture
    blocks: tuple[Block, ...]
    """One entry per layer; equal layers are the same object."""
    outside: tuple[Tensor, ...]
    """Embeddings, last norm, output head (absent if tied)."""
    notes: tuple[str, ...] = ()
    """What was inferred or assumed, in sentences for the user."""
    factory: str | None = None
    """package.module:function that makes the model, where it is the user's own."""
    stated_parameters: int | None = None
    """The round figure that the user gave (7B), for accounts that quote it; sizes decide everything else."""

    @cached_property
    def parameters(self) -> int:
        """All parameters, frozen ones included."""
        return sum(block.parameters for block in self.blocks) + sum(t.numel for t in self.outside)

    @cached_property
    def trainable(self) -> int:
        """Parameters that get gradients and optimizer states."""
        return sum(block.trainable for block in self.blocks) + sum(
            tensor.numel for tensor in self.outside if tensor.trainable
        )

    @cached_property
    def largest_block(self) -> int:
        """Parameters of the largest decoder layer."""
        return max(block.parameters for block in self.blocks)

    @cached_property
    def kinds(self) -> tuple[Block, ...]:
        """Each different block once. Equal layers are one object, so identity tells, and no tensor is hashed."""
        return tuple({id(block): block for block in self.blocks}.values())

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Which of ``kinds`` each layer is."""
        positions = {id(block): position for position, block in enumerate(self.kinds)}
        return tuple(positions[id(block)] for block in self.blocks)

    @cached_property
    def outer(self) -> Block:
        """What is outside the blocks, with the sums that a block has."""
        return Block(self.outside)

    @cached_property
    def largest_tensor(self) -> int:
        """Elements of the largest single tensor."""
        return max(block.largest for block in (*self.kinds, self.outer))

    @cached_property
    def largest_trainable_block_tensor(self) -> int:
        """Elements of the largest trained tensor inside a decoder layer; 0 if none is."""
        return max((block.largest_trainable for block in self.kinds), default=0)

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """What others worked out of these shapes and ask for again with each of thousands of plans; by their own keys,
        see dsgen/memory/derived.py."""
        return {}
