"""Page-locked host memory."""


def pinned(size: int) -> int:
    """Bytes that one page-locked tensor takes: torch rounds it up to a power of two
    (aten/src/ATen/core/CachingHostAllocator.h:allocate, pinned_max_round_threshold unset), so up to twice its size."""
    return size if size <= 0 else int(1 << (size - 1).bit_length())
