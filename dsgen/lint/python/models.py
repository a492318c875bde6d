"""Which wrapper owns a model: DDP, FSDP1, FSDP2, DeepSpeed, Accelerate, Fabric, or none that can be seen."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dsgen.lint.python.bindings import ITEM
from dsgen.lint.python.names import DDP, FSDP1, FULLY_SHARD, argument, called, calls_of
from dsgen.lint.python.origins import Origin, Origins, origins
from dsgen.lint.python.read import PythonFile

Wrapper = Literal["ddp", "fsdp1", "fsdp2", "deepspeed", "accelerate", "fabric", "dp"]

SHOWN: Mapping[Wrapper, str] = {
    "ddp": "DistributedDataParallel",
    "fsdp1": "FullyShardedDataParallel",
    "fsdp2": "fully_shard",
    "deepspeed": "the DeepSpeed engine",
    "accelerate": "Accelerate",
    "fabric": "Fabric",
    "dp": "DataParallel",
}

_FUNCTIONS: Mapping[str, Wrapper] = {
    DDP: "ddp",
    FSDP1: "fsdp1",
    FULLY_SHARD: "fsdp2",
    "torch.nn.DataParallel": "dp",
    "torch.nn.parallel.DataParallel": "dp",
    "deepspeed.initialize": "deepspeed",
}


@dataclass(frozen=True, slots=True)
class Wrap:
    """One call that wraps (or shards in place) a model."""

    wrapper: Wrapper
    call: ast.Call
    subject: ast.expr | None
    """The module that is given; None where it cannot be seen."""


def wraps(file: PythonFile) -> list[Wrap]:
    """Every call that wraps a model, in the order of the text."""
    return file.once(_wraps)


def _wraps(file: PythonFile) -> list[Wrap]:
    found = [
        Wrap(wrapper, call, argument(call, "args" if wrapper == "deepspeed" else "module", 0))
        for name, wrapper in _FUNCTIONS.items()
        for call in calls_of(file, name)
    ]
    found = [
        Wrap("deepspeed", wrap.call, argument(wrap.call, "model", 1)) if wrap.wrapper == "deepspeed" else wrap
        for wrap in found
    ]
    for call in file.tree.methods_called("prepare", "prepare_model", "setup", "setup_module"):
        owner = receiver(call)
        if owner is not None and is_accelerator(file, owner):
            found.append(Wrap("accelerate", call, None))
        elif owner is not None and is_fabric(file, owner):
            found.append(Wrap("fabric", call, None))
    return sorted(found, key=lambda wrap: (wrap.call.lineno, wrap.call.col_offset))[:_MOST]


# More than any training file has; a bound on what hostile files cost.
_MOST = 200


def receiver(call: ast.Call) -> ast.expr | None:
    """What a method is called on."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def wraps_by(file: PythonFile, wrapper: Wrapper) -> list[Wrap]:
    """Those of one wrapper."""
    return [wrap for wrap in wraps(file) if wrap.wrapper == wrapper]


def wraps_of(file: PythonFile, model: ast.AST) -> list[Wrap]:
    """The calls that made a value what it is."""
    mine = origins(file, model)
    index = file.once(_by_origin)
    found = {wrap.call: wrap for origin in mine for wrap in index.get(origin, ())}
    for origin in mine:
        for wrap in index.get(Origin(origin.node), ()):
            if origin.steps and wrap.wrapper in ("accelerate", "fabric") and isinstance(origin.steps[0], int):
                found[wrap.call] = wrap
    return list(found.values())


def _by_origin(file: PythonFile) -> dict[Origin, list[Wrap]]:
    """From what makes a wrapped model to the wraps. Sharding in place marks the module that was there before."""
    index: dict[Origin, list[Wrap]] = {}
    for wrap in wraps(file):
        result = Origin(wrap.call, (0,) if wrap.wrapper == "deepspeed" else ())
        marked = {result}
        if wrap.wrapper == "fsdp2" and wrap.subject is not None:
            marked |= origins(file, wrap.subject)
        for origin in marked:
            index.setdefault(origin, []).append(wrap)
    return index


def wrapper_of(file: PythonFile, model: ast.AST) -> Wrapper | None:
    """The one wrapper of a model; None where there is none, or where it can be several."""
    kinds = {wrap.wrapper for wrap in wraps_of(file, model)}
    return kinds.pop() if len(kinds) == 1 else None


def only_wrapper(file: PythonFile) -> Wrapper | None:
    """The one wrapper that the file uses at all."""
    kinds = {wrap.wrapper for wrap in wraps(file)}
    return kinds.pop() if len(kinds) == 1 else None


def is_whole(found: Origins) -> bool:
    """Whether a value is a whole model rather than one of the blocks that a loop goes over."""
    return not any(ITEM in origin.steps or any(isinstance(step, str) for step in origin.steps) for origin in found)


# list(filter(...)) of a name that is such a list: real code stops at two.
_NESTED = 3


def parameters_of(file: PythonFile, expression: ast.AST, depth: int = 0) -> list[ast.expr]:
    """The models whose ``parameters()`` an expression takes: directly, by a list, filter or comprehension."""
    found: list[ast.expr] = []
    if depth > _NESTED:
        return found
    for origin in origins(file, expression):
        inside = [node for node in ast.walk(origin.node) if isinstance(node, ast.Call)] if _is_small(origin) else []
        for call in inside:
            match call.func:
                case ast.Attribute(value=model, attr="parameters" | "named_parameters"):
                    found.append(model)
                case ast.Name(id="filter" | "list" | "iter") if call.args:
                    if isinstance(call.args[-1], ast.Name):
                        found.extend(parameters_of(file, call.args[-1], depth + 1))
    return found


def _is_small(origin: Origin) -> bool:
    return isinstance(origin.node, ast.expr)


def is_accelerator(file: PythonFile, expression: ast.AST) -> bool:
    """Whether an object is an ``Accelerator``: made in the file, or called so where it comes from elsewhere."""
    return _made_by(file, expression, "accelerate.Accelerator") or _last_name(expression) == "accelerator"


def is_fabric(file: PythonFile, expression: ast.AST) -> bool:
    """Whether an object is Lightning's ``Fabric``."""
    made = _made_by(file, expression, "lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
    return made or _last_name(expression) == "fabric"


def _made_by(file: PythonFile, expression: ast.AST, *names: str) -> bool:
    return any(not o.steps and called(file, o.node) in names for o in origins(file, expression))


def _last_name(expression: ast.AST) -> str | None:
    name = getattr(expression, "attr", None) or getattr(expression, "id", None)
    return str(name) if name else None
