"""The plain loop rounds what mixed precision rounds, and nothing else."""

import torch
from torch import Tensor, nn

from dsgen.workers.reference import Reference


class Turned(nn.Module):
    """A weight and a buffer, as the frequencies of a rotary embedding are one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 8)
        self.register_buffer("frequencies", torch.full((8,), 1 / 3))
        self.dtypes: list[torch.dtype] = []

    def forward(self, tokens: Tensor) -> Tensor:
        self.dtypes += [self.embedding.weight.dtype, self.frequencies.dtype]
        return self.embedding(tokens) * self.frequencies


def test_buffers_keep_their_type() -> None:
    """FSDP2 casts parameters and inputs, no buffers (torch.distributed.fsdp.MixedPrecisionPolicy). Qwen3's frequencies
    in bf16 put a right run 5 % of its movement away from the plain loop."""
    model = Turned()
    reference = Reference(torch, model, "bfloat16", "fp32")
    tokens = torch.arange(4).view(1, 4)
    how = {"type": "SGD", "params": {"lr": 0.1}, "dummy_step": False}
    weights = {"embedding.weight": model.embedding.weight.detach().clone()}
    reference.train(weights, lambda _step: [[(tokens, tokens)]], 1, None, how)
    seen = reference._computing.dtypes
    assert seen == [torch.bfloat16, torch.float32]
    assert model.embedding.weight.dtype == torch.float32  # what takes the step
