"""The machines of a run."""

from math import ceil

from dsgen.facts.gpus import Gpu, find_gpu
from dsgen.hardware import Hardware
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.units import GIB

_USABLE = 0.985
"""Share of the nominal size (in GiB) that a driver reports: 0.98 to 0.99 over gpus.csv. Only for cards not in it."""


def hardware_of(run: Run) -> Hardware:
    """The card by name; an unknown card by its nominal memory."""
    name, nominal = run.texts["gpu"], run.numbers["gpu_mem_gb"]
    gpu = find_gpu(name)
    if gpu is None:
        if nominal is None:
            raise SkippedError(f"no GPU is called {name!r}, and gpu_mem_gb is empty")
        gpu = Gpu(
            name=name,
            memory=int(nominal * _USABLE * GIB),
            bf16_tflops=None,
            fp16_tflops=None,
            fp32_tflops=None,
            memory_gb_s=None,
            link_gb_s=None,
        )
    world, nodes = run.counts["n_gpus"] or 1, run.counts["nodes"] or 1
    return Hardware(
        gpu=gpu,
        gpus_per_node=ceil(world / nodes),
        nodes=nodes,
        memory_budget=gpu.memory,
        budget_reason="the card",
    )
