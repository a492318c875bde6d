"""The peak of an RMSNorm that is written out in tensor operations, counted over a run on the CPU."""

import weakref
from pathlib import Path
from typing import Any

import pytest
from made_runs import table

from dsgen.score.component import predicted_bytes
from dsgen.score.runs import read_runs

H, TOKENS = 1024, 256


def predicted(folder: Path, provider: str, **cells: str) -> int:
    sizes = {"hidden": str(H), "seq_len": str(TOKENS), "micro_batch": "1", "kind": "component"}
    cells = {"model": "component:rms_norm", "loss_impl": provider, **sizes, **cells}
    (run,) = read_runs(table(folder, cells)).rows
    return predicted_bytes(run)


def counted() -> int:
    """Most bytes that live in the second forward and backward pass of the benchmark's module and loop."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        now = most = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            for tensor in torch.utils._pytree.tree_leaves(out):
                if isinstance(tensor, torch.Tensor):
                    self._note(tensor.untyped_storage())
            return out

        def __init__(self) -> None:
            super().__init__()
            self.known: set[int] = set()

        def _note(self, storage: Any) -> None:
            key, size = storage._cdata, storage.nbytes()
            if key in self.known:
                return
            self.known.add(key)
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._gone, key, size)

        def _gone(self, key: int, size: int) -> None:
            self.known.discard(key)
            self.now -= size

    with Count() as count:
        weight = torch.ones(H, requires_grad=True)
        x = torch.randn(TOKENS, H, dtype=torch.bfloat16)
        given = torch.randn_like(x)
        x.requires_grad_()
        for _ in range(2):
            count.most = count.now
            wide = x.to(torch.float32)
            wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
            y = weight * wide.to(x.dtype)
            del wide
            y.backward(given, retain_graph=True)
            del y
    return count.most


def test_written_out(tmp_path: Path) -> None:
    assert predicted(tmp_path, "huggingface") == pytest.approx(counted(), rel=0.01)


def test_one_kernel(tmp_path: Path) -> None:
    """Input, its old and its new gradient and the given one, 2 bytes each; output and its gradient, 4."""
    assert predicted(tmp_path, "liger") == (4 * 2 + 2 * 4) * H * TOKENS
