"""Buffer sizes that a file leaves out: what DeepSpeed takes by itself."""

from typing import Any

from dsgen.formats.deepspeed.read.table import CARRIED
from dsgen.formats.deepspeed.read.walk import default
from dsgen.plan import Buckets, Swap


def keys_of(group: str) -> dict[str, str]:
    """Field of ``want.buckets`` or ``want.swap`` to its dotted key; of several keys the first (pin_memory has two)."""
    found: dict[str, str] = {}
    for key, (path, _) in CARRIED.items():
        if path[:2] == ("want", group):
            found.setdefault(path[2], key)
    return found


def default_buckets(version: str) -> Buckets:
    """All sizes as that DeepSpeed takes them, in elements."""
    return Buckets(**_defaults("buckets", version))


def default_swap(version: str) -> Swap:
    """All of the offload's buffers as that DeepSpeed takes them."""
    return Swap(**_defaults("swap", version))


def _defaults(group: str, version: str) -> dict[str, Any]:
    return {field: default(key, version) for field, key in keys_of(group).items()}
