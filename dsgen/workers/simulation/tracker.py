"""Counts the bytes of every living tensor while training code runs on tensors without contents.

A dispatch mode inside FakeTensorMode sees each operator's result. Bytes belong to storages, so that views count once,
and what Python or autograd still refers to counts as long as it does. What the kernels would write is never needed:
scalars that the code asks for (norms, overflow flags, counts) are answered so that training goes on.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from dsgen.workers.collectives import KINDS

# The caching allocator rounds every request up to this (c10/core/AllocatorConfig.h: kMinBlockSize).
_BLOCK = 512
_aten = torch.ops.aten


@dataclass
class Peak:
    """The most that was alive at a site, and by category."""

    total: int = 0
    categories: dict[str, int] = field(default_factory=dict)


@dataclass
class _Entry:
    """One living storage."""

    size: int
    category: str
    alive: "weakref.ref[Any]"


class Tracker(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own hook has no types
    """What lives, by category; the peak of each site. A site is whatever string ``site`` holds."""

    def __init__(self, logits: int, nonzero_share: float) -> None:
        """``logits``: elements of one micro-batch's logits. ``nonzero_share``: how much of a mask is set, where code
        asks for the places (a router, for the tokens of one expert)."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.site = ""
        """Empty: nothing is recorded."""
        self.category = "activations"
        """Of what comes into being."""
        self.forced: str | None = None
        """The same, while buffers of a collective are made."""
        self.total = 0
        self.live: Counter[str] = Counter()
        self.peaks: dict[str, Peak] = {}
        self.collectives: Counter[str] = Counter()
        self._entries: dict[int, _Entry] = {}
        self._suspended = 0
        self._logits = logits
        self._nonzero_share = nonzero_share

    def gradients_of(self, parameter: Any) -> None:
        """What is computed as this parameter's gradient is one."""
        parameter.register_hook(lambda gradient: self.retag(gradient, "gradients"))

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """What comes into being is not counted."""
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

    @contextmanager
    def making(self, category: str) -> Iterator[None]:
        """What comes into being is of this category."""
        before, self.forced = self.forced, category
        try:
            yield
        finally:
            self.forced = before

    def suspending(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, uncounted."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.suspended():
                return function(*args, **kwargs)

        return wrapped

    def of(self, category: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, whose results are of this category."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.making(category):
                return function(*args, **kwargs)

        return wrapped

    def retag(self, tensor: Any, category: str) -> None:
        """Tells what a living tensor is; counts it if nobody has."""
        local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        entry = self._entries.get(local.untyped_storage()._cdata)
        if entry is None:
            self._add(local, category)
        elif entry.category != category:
            self.live[entry.category] -= entry.size
            self.live[category] += entry.size
            entry.category = category

    def resized(self, storage: Any) -> None:
        """A storage has another size now: FSDP frees by resizing to nothing."""
        entry = self._entries.get(storage._cdata)
        if entry is None:
            return
        if not entry.size and self.forced is not None:
            entry.category = self.forced
        self._change(entry, _rounded(storage.nbytes()) - entry.size)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # its operators on the rank's own part come here by themselves
        if func is _aten._local_scalar_dense.default:
            return _answer(args[0].dtype)
        if func is _aten.nonzero.default:
            rows = round(args[0].numel() * self._nonzero_share)
            result = args[0].new_zeros((rows, args[0].dim()), dtype=torch.int64)
            self._see(result)
            return result
        if func.namespace in ("c10d", "_c10d_functional"):
            name = func.__name__.partition(".")[0].strip("_")
            if name == "wait_tensor":
                return args[0]  # its shape function would make a new tensor
            if self.site and name in KINDS:
                self.collectives[KINDS[name]] += 1
        result = func(*args, **(kwargs or {}))
        if not self._suspended:
            self._see(result)
        return result

    def _see(self, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            if not isinstance(result, DTensor) and result.device.type != "meta":
                key = result.untyped_storage()._cdata
                if key not in self._entries:
                    self._add(result, self._category_of(result))
        elif isinstance(result, (tuple, list)):
            for each in result:
                self._see(each)

    def _category_of(self, tensor: torch.Tensor) -> str:
        if self.forced is not None:
            return self.forced
        return "logits" if tensor.numel() == self._logits else self.category

    def _add(self, tensor: torch.Tensor, category: str) -> None:
        storage: Any = tensor.untyped_storage()
        key = storage._cdata
        entry = _Entry(0, category, weakref.ref(storage, lambda _: self._gone(key)))
        self._entries[key] = entry
        self._change(entry, _rounded(storage.nbytes()))

    def _gone(self, key: int) -> None:
        entry = self._entries.pop(key)
        self._change(entry, -entry.size)

    def _change(self, entry: _Entry, by: int) -> None:
        entry.size += by
        self.live[entry.category] += by
        self.total += by
        if by > 0 and self.site:
            peak = self.peaks.get(self.site)
            if peak is None:
                peak = self.peaks[self.site] = Peak()
            if self.total > peak.total:
                peak.total, peak.categories = self.total, dict(self.live)


def _rounded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _answer(kind: torch.dtype) -> Any:
    """No overflow, no count, and a norm of one: with nothing, Adam's bias correction would divide by it."""
    if kind is torch.bool:
        return False
    return 1.0 if kind.is_floating_point else 0
