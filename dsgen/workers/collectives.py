"""Counts what the ranks say to each other, by kind.

torch.distributed calls its process groups through the dispatcher (namespaces c10d and _c10d_functional), also from
DDP's reducer and from the hooks of FSDP and DeepSpeed: a dispatch mode sees all of it.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Operators of torch/csrc/distributed/c10d/Ops.cpp and Functional.cpp, without their underscores.
KINDS = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "allgather": "all_gather",
    "allgather_base": "all_gather",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "scatter": "scatter",
    "gather": "gather",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "all_to_all_single": "all_to_all",
    "send": "send",
    "recv": "recv",
}


class Collectives:
    """Counts and elements per step; a step begins with ``next_step``."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.steps: list[dict[str, dict[str, int]]] = []

    def next_step(self) -> None:
        self.steps.append({})

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts until the end of the block."""
        with _watching(self._see):
            yield

    def _see(self, operator: str, arguments: Any) -> None:
        kind = KINDS.get(operator)
        if kind is None or not self.steps:
            return
        from torch.utils._pytree import tree_leaves

        # Of input and output the larger is the whole: a gather's output, a reduce-scatter's input.
        whole = max(
            sum(self._torch.Size(leaf.shape).numel() for leaf in tree_leaves(argument) if hasattr(leaf, "shape"))
            for argument in arguments
        )
        seen = self.steps[-1].setdefault(kind, {"count": 0, "small": 0, "elements": 0})
        if whole < SMALL:
            seen["small"] += 1
        else:
            seen["count"] += 1
            seen["elements"] += whole


def _watching(see: Callable[[str, Any], None]) -> Any:
    """A dispatch mode; torch is imported only in a process that has it already."""
    mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    def dispatch(_self: Any, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            see(func.__name__.partition(".")[0].strip("_"), args)
        return func(*args, **(kwargs or {}))

    return type("Watching", (mode,), {"__torch_dispatch__": dispatch})()


SMALL = 64
"""Below: norms, overflow flags, counts. The smallest weight of the tiny model has as many elements as it is wide."""
