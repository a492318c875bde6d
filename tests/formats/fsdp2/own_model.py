"""A model of somebody's own: tied embeddings, a buffer, and an output that is an object."""

from types import SimpleNamespace

import torch
from torch import nn

VOCAB, WIDTH, LENGTH = 256, 32, 64


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.few = nn.ModuleList([nn.LayerNorm(WIDTH)])
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("positions", torch.randn(LENGTH, WIDTH) / 10)

    def forward(self, tokens: torch.Tensor) -> SimpleNamespace:
        length = tokens.shape[1]
        x = self.embedding(tokens)
        x = self.few[0](x + self.positions[:length].to(x.dtype))
        mask = torch.full((length, length), float("-inf"), device=x.device, dtype=x.dtype).triu(1)
        for layer in self.layers:
            x = layer(x, mask)
        return SimpleNamespace(logits=self.head(x))


def build() -> nn.Module:
    return Model()
