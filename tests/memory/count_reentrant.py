"""Peak of activations of a frozen stack with adapters under FSDP1 and checkpointing; run as its own process.

stdin: [{"layers", "reentrant", "sharded"}]; stdout: for each the peak over both passes, in blocks' inputs. One rank of
two, with torch's fake process group: collectives do nothing, which changes no size.
"""

import functools
import json
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributed import init_process_group
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import _or_policy, lambda_auto_wrap_policy, transformer_auto_wrap_policy
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

WIDTH, TOKENS = 64, 100


class Adapted(nn.Module):
    """A frozen linear layer with a trained pair beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH, bias=False).requires_grad_(False)
        self.lora_a = nn.Linear(WIDTH, 4, bias=False)
        self.lora_b = nn.Linear(4, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.lora_b(self.lora_a(x))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH).requires_grad_(False)
        self.adapted = Adapted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.adapted(self.norm(x))  # type: ignore[no-any-return]


class Stack(nn.Module):
    """Layers, each checkpointed, behind a frozen embedding whose output is made to need a gradient."""

    def __init__(self, layers: int, reentrant: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, WIDTH).requires_grad_(False)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.reentrant = reentrant

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens).requires_grad_(True)
        for layer in self.layers:
            x = checkpoint(layer.__call__, x, use_reentrant=self.reentrant)
        return x.sum()  # type: ignore[no-any-return]


class Peak(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of all that has a row for each token, at most."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.dim() > 1 and tensor.shape[0] == TOKENS:
                self._count(tensor.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def trained_leaf(module: nn.Module) -> bool:
    """PEFT's wrap policy: a leaf that is trained is a unit of its own."""
    return not list(module.children()) and any(weight.requires_grad for weight in module.parameters(recurse=False))


def main() -> None:
    torch.set_num_threads(1)
    init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    json.dump([peak(**case) for case in json.load(sys.stdin)], sys.stdout)


def peak(layers: int, reentrant: bool, sharded: bool) -> float:
    """One case."""
    model: nn.Module = Stack(layers, reentrant)
    if sharded:
        policies = [
            functools.partial(lambda_auto_wrap_policy, lambda_fn=trained_leaf),
            functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Layer}),
        ]
        policy = functools.partial(_or_policy, policies=policies)
        model = FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=torch.device("cpu"))
    counted = Peak()
    with counted:
        model(torch.zeros(TOKENS, dtype=torch.long)).backward()
    return counted.most / (TOKENS * WIDTH * 4)


if __name__ == "__main__":
    main()
