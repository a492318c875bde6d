"""Parameters that FSDP1 keeps on the CPU."""

import ast

from dsgen.lint.python.models import Wrap, wraps_by
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile


def offloads(file: PythonFile, wrap: Wrap) -> bool:
    """Whether an FSDP1 wrap plainly offloads: ``cpu_offload=CPUOffload(offload_params=True)``."""
    given = argument(wrap.call, "cpu_offload", 3)
    for origin in origins(file, given) if given is not None else ():
        if called(file, origin.node) == "torch.distributed.fsdp.CPUOffload" and isinstance(origin.node, ast.Call):
            on = argument(origin.node, "offload_params", 0)
            if isinstance(on, ast.Constant) and on.value is True:
                return True
    return False


def offloads_parameters(file: PythonFile) -> bool:
    """Whether any FSDP1 model of the file does."""
    return any(offloads(file, wrap) for wrap in wraps_by(file, "fsdp1"))
