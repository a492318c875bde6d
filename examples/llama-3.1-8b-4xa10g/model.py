"""A plain-torch decoder with the tensors and the data flow of llama-3.1-8b.

Parameters are named as in Hugging Face's Llama, without its leading "model.". They
start from scratch; what changes no shape (RoPE base, norm epsilon) stands in Config
and has to be set before weights are loaded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

INIT_STD = 0.02
IGNORE_INDEX = -100


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's way to longer texts, by the names of config.json."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: float


@dataclass(frozen=True)
class Config:
    """Sizes, by the names of Hugging Face's config.json."""

    vocab_size: int = 128256
    hidden_size: int = 4096
    intermediate_size: int = 14336
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 8
    head_dim: int = 128
    max_position_embeddings: int = 131072
    rotary_dim: int = 128
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    norm_eps: float = 1e-5

    @classmethod
    def tiny(cls) -> "Config":
        """The same traits at a size that trains on a laptop."""
        return cls(
            vocab_size=256,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=128,
            rotary_dim=16,
        )


class Linear(nn.Linear):
    """Starts from a normal distribution; in reset_parameters, where ZeRO-3 sees it."""

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=INIT_STD)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Embedding(nn.Embedding):
    """Starts from a normal distribution too."""

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=INIT_STD)


def norm(width: int, config: Config) -> nn.Module:
    return nn.RMSNorm(width, eps=config.norm_eps)


def stretched(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Slow rotations by the factor slower, fast ones as they are, a ramp between."""
    original = scaling.original_max_position_embeddings
    turns = frequencies * original / (2 * math.pi)  # over the original length
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def rope_table(length: int, config: Config, like: Tensor) -> Tensor:
    """Cosines and sines of the rotary embedding: (2, length, 1, rotary_dim / 2)."""
    pairs = torch.arange(0, config.rotary_dim, 2, device=like.device).float()
    frequencies = config.rope_theta ** (-pairs / config.rotary_dim)
    if config.rope_scaling is not None:
        frequencies = stretched(frequencies, config.rope_scaling)
    positions = torch.arange(length, device=like.device).float()
    angles = torch.outer(positions, frequencies)
    return torch.stack((angles.cos(), angles.sin())).unsqueeze(2).to(like.dtype)


def rotate(x: Tensor, rope: Tensor) -> Tensor:
    """Turns pairs (i, i + half) of each head by the angle of its position."""
    cos, sin = rope
    x = x.transpose(1, 2)  # as projected: so attention's output needs no copy
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), -1)
    return turned.transpose(1, 2)


class Attention(nn.Module):
    """Causal attention whose heads share keys and values in groups."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        hidden = config.hidden_size
        queries = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        self.q_proj = Linear(hidden, queries, bias=False)
        self.k_proj = Linear(hidden, keys, bias=False)
        self.v_proj = Linear(hidden, keys, bias=False)
        self.o_proj = Linear(queries, hidden, bias=False)

    def split(self, x: Tensor) -> Tensor:
        """(batch, length, heads x head_dim) to (batch, heads, length, head_dim)."""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def forward(self, x: Tensor, rope: Tensor) -> Tensor:
        q, k = self.split(self.q_proj(x)), self.split(self.k_proj(x))
        v = self.split(self.v_proj(x))
        q, k = rotate(q, rope), rotate(k, rope)
        x = F.scaled_dot_product_attention(
            q,
            k,
            v,
            is_causal=True,
            enable_gqa=True,
        )
        return self.o_proj(x.transpose(1, 2).flatten(-2))


def activate(x: Tensor) -> Tensor:
    return F.silu(x)


class MLP(nn.Module):
    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate_proj = Linear(hidden, width, bias=False)
        self.up_proj = Linear(hidden, width, bias=False)
        self.down_proj = Linear(width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(activate(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """One decoder layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config.hidden_size, config.intermediate_size)
        self.input_layernorm = norm(config.hidden_size, config)
        self.post_attention_layernorm = norm(config.hidden_size, config)

    def forward(self, x: Tensor, rope: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope)
        return x + self.mlp(self.post_attention_layernorm(x))


# What selective checkpointing keeps: matrix products and the attention kernels.
_aten = torch.ops.aten
KEPT = {
    _aten.mm.default,
    _aten.addmm.default,
    _aten._scaled_dot_product_flash_attention.default,
    _aten._scaled_dot_product_efficient_attention.default,
    _aten._scaled_dot_product_cudnn_attention.default,
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
}


def keep(_context: Any, operator: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
    if operator in KEPT:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


class Decoder(nn.Module):
    """Token ids in; the loss out where labels are given, else the logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.checkpointed: Sequence[int] = ()
        self.checkpoint_kwargs: dict[str, Any] = {"use_reentrant": False}
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            Block(config) for _ in range(config.num_hidden_layers)
        )
        self.norm = norm(config.hidden_size, config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)

    def enable_checkpointing(self, kind: str, every: int = 1) -> None:
        """Recompute blocks in the backward pass.

        kind: none; full (every block); every (one block in so many); selective (every
        block, but matrix products and attention are kept).
        """
        layers = range(len(self.layers))
        self.checkpointed = layers[:: every if kind == "every" else 1]
        if kind == "none":
            self.checkpointed = ()
        if kind == "selective":
            contexts = partial(create_selective_checkpoint_contexts, keep)
            self.checkpoint_kwargs["context_fn"] = contexts

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Tensor:
        x = self.embed_tokens(input_ids)
        length = input_ids.shape[-1]
        rope = rope_table(length, self.config, x)
        for index, layer in enumerate(self.layers):
            inputs = (x, rope)
            if self.training and index in self.checkpointed:
                x = checkpoint(layer, *inputs, **self.checkpoint_kwargs)
            else:
                x = layer(*inputs)
        x = self.norm(x)
        return self.logits(x) if labels is None else self.loss(x, labels)

    def logits(self, x: Tensor) -> Tensor:
        return self.lm_head(x)

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of each next token; labels may be the input ids."""
        targets = F.pad(labels, (0, 1), value=IGNORE_INDEX)[..., 1:]
        logits = self.logits(x).float().flatten(0, -2)
        return F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORE_INDEX)
