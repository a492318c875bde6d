"""Replays one training step's requests for memory through the rules of torch's caching allocator, for lengths that are
the same or vary. Not torch's code: its rules, read in c10/cuda/CUDACachingAllocator.cpp (2.13)."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

MIB = 2**20
Request = tuple[int, float, float]
"""An id (positive: asked for; negative: given back), fixed bytes, bytes per token."""


@dataclass(eq=False)
class Chunk:
    """A part of a segment."""

    size: int
    order: int
    small: bool
    free: bool = False
    before: "Chunk | None" = None
    behind: "Chunk | None" = None


@dataclass
class Allocator:
    """One stream. Requests up to 1 MiB come out of segments of 2 MiB, those up to 10 MiB out of 20 MiB, larger ones
    have their own; the smallest free chunk that is large enough is taken and, if much is left, split; neighbours
    merge."""

    reserved: int = 0
    allocated: int = 0
    most: int = 0
    chunks: int = 0
    pools: dict[bool, list[tuple[int, int, Chunk]]] = field(default_factory=lambda: {True: [], False: []})

    def take(self, size: int) -> Chunk:
        size = max(512, -(-size // 512) * 512)
        small = size <= MIB
        pool = self.pools[small]
        position = bisect_left(pool, (size, -1))
        chunk = pool.pop(position)[2] if position < len(pool) else self._segment(size, small)
        left = chunk.size - size
        if left >= 512 if small else left > MIB:
            rest = Chunk(left, self._next(), small, True, chunk, chunk.behind)
            if chunk.behind is not None:
                chunk.behind.before = rest
            chunk.size, chunk.behind = size, rest
            insort(pool, (rest.size, rest.order, rest))
        chunk.free = False
        self.allocated += chunk.size
        self.most = max(self.most, self.allocated)
        return chunk

    def give(self, chunk: Chunk) -> None:
        self.allocated -= chunk.size
        pool = self.pools[chunk.small]
        for other in (chunk.before, chunk.behind):
            if other is None or not other.free:
                continue
            pool.pop(bisect_left(pool, (other.size, other.order)))
            chunk.size += other.size
            if other is chunk.before:
                chunk.before = other.before
                if other.before is not None:
                    other.before.behind = chunk
            else:
                chunk.behind = other.behind
                if other.behind is not None:
                    other.behind.before = chunk
        chunk.free = True
        insort(pool, (chunk.size, chunk.order, chunk))

    def _segment(self, size: int, small: bool) -> Chunk:
        whole = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        self.reserved += whole
        return Chunk(whole, self._next(), small)

    def _next(self) -> int:
        self.chunks += 1
        return self.chunks


def replay(requests: Iterable[Request], lengths: Iterable[int]) -> float:
    """What is reserved over the most that is allocated, after a step of each length."""
    allocator, steps = Allocator(), list(requests)
    for tokens in lengths:
        held: dict[int, Chunk] = {}
        for name, fixed, each in steps:
            if name > 0:
                held[name] = allocator.take(int(fixed + each * tokens))
            elif -name in held:
                allocator.give(held.pop(-name))
        for chunk in held.values():
            allocator.give(chunk)
    return allocator.reserved / allocator.most
