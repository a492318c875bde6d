"""Amounts that rules about memory share: ranks, widths, bytes in words. None: nobody can tell."""

from typing import TYPE_CHECKING

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on, whole
from dsgen.lint.target import LintTarget

if TYPE_CHECKING:
    from dsgen.facts.gpus import Gpu

FP32 = 4
"""Bytes of one element."""
# Each from where on: 0.22 GB says more than 220 MB beside other GB, and 640 GB more than 0.64 TB.
_UNITS = (("TB", 1e12, 1e12), ("GB", 1e9, 1e8), ("MB", 1e6, 1e5), ("KB", 1e3, 1e2))


def in_bytes(count: float) -> str:
    """Bytes in decimal units with three digits, without zeros at the end: 16 GB, 0.22 GB."""
    unit, size = next(((unit, size) for unit, size, first in _UNITS if count >= first), ("bytes", 1))
    return f"{count / size:.3g} {unit}" if count < 1e15 else f"{count:.3g} bytes"


def elements(count: float) -> str:
    """A number of elements as configs write it: 5e8."""
    if count < 10_000 or count > 1e300:
        return f"{min(count, 1e300):.10g}"
    text = f"{count:.3e}"
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def width(file: ConfigFile, target: LintTarget) -> int | None:
    """Bytes of a weight as it computes: 2 for fp16 and bf16, else 4."""
    modes = [is_on(file, mode, target) for mode in ("fp16", "bf16")]
    if True in modes:
        return 2
    return None if None in modes or file.has("bfloat16") else FP32


def zero_ranks(file: ConfigFile, target: LintTarget) -> int | None:
    """Ranks over which ZeRO shards: all but those of tensor parallelism. Those that split sequences shard, too.

    With a pipeline section, whose stages are set in code, the figure is not known.
    """
    if target.world_size is None or file.has("pipeline"):
        return None
    ranks, rest = divmod(target.world_size, tensor_ranks(file))
    return None if rest else ranks


def tensor_ranks(file: ConfigFile) -> int:
    """Ranks that share each matrix."""
    return whole(file.get("tensor_parallel", "autotp_size")) or 1


def ranks_per_node(target: LintTarget) -> int | None:
    """Processes of one node."""
    if target.gpus_per_node is None:
        return 1 if target.world_size == 1 else None
    return min(target.gpus_per_node, target.world_size or target.gpus_per_node)


def has_bf16(gpu: "Gpu") -> bool | None:
    """Whether a GPU computes in bf16 natively: Ampere and later; None for a card of which only the memory is known."""
    if gpu.cuda is not None:
        return gpu.cuda >= 8
    return True if gpu.has_bf16 else None


def number(value: object) -> float | None:
    """A number above zero as it stands; None for "auto", true and all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 < value < 1e300 else None


def state_bytes(file: ConfigFile) -> float:
    """Bytes of the optimizer's states of one parameter that is stepped in fp32; 0 where the config names no optimizer
    that dsgen knows."""
    from dsgen.facts.optimizers import find_optimizer

    name = file.get("optimizer", "type")
    known = find_optimizer(name) if isinstance(name, str) else None
    return known.state_size(FP32, 0.0) if known else 0
