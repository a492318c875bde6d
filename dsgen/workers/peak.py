"""Peak memory of this process, per case."""

import contextlib
import sys
from pathlib import Path
from typing import Any

_KIB = 1024


def reset(torch: Any, device: str) -> None:
    """Forgets the peak so far."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return
    # Not Linux, or a sandbox: the peak then includes what came before, never less than the truth.
    with contextlib.suppress(OSError):
        # proc(5): 5 resets the peak resident set size (VmHWM) to the present one.
        Path("/proc/self/clear_refs").write_text("5")


def measure(torch: Any, device: str) -> dict[str, int]:
    """Bytes at the peak: allocated and reserved on a GPU, resident on a CPU."""
    if device == "cuda":
        return {
            "peak_memory": int(torch.cuda.max_memory_allocated()),
            "peak_reserved": int(torch.cuda.max_memory_reserved()),
        }
    return {"peak_memory": _resident_peak()}


def _resident_peak() -> int:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KIB
