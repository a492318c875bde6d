"""Names of libraries: one dotted name for each thing, whatever the file calls it and wherever it imports it from."""

import ast
from collections.abc import Mapping

from dsgen.lint.python.bindings import bindings
from dsgen.lint.python.read import PythonFile

# Where the same thing can be imported from several places, the one that is used here.
_PUBLIC: Mapping[str, str] = {
    "torch.nn.parallel.distributed": "torch.nn.parallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel": "torch.distributed.fsdp",
    "torch.distributed.fsdp.api": "torch.distributed.fsdp",
    "torch.distributed.fsdp._fully_shard": "torch.distributed.fsdp",
    "torch.distributed.fsdp._fully_shard._fsdp_api": "torch.distributed.fsdp",
    "torch.distributed._composable.fsdp": "torch.distributed.fsdp",
    "torch.distributed._composable.fsdp.fully_shard": "torch.distributed.fsdp",
    "torch.distributed.fsdp.wrap": "torch.distributed.fsdp.wrap",
    "torch.cuda.amp.grad_scaler": "torch.cuda.amp",
    "torch.cuda.amp.autocast_mode": "torch.cuda.amp",
    "torch.amp.grad_scaler": "torch.amp",
    "torch.amp.autocast_mode": "torch.amp",
    "torch.utils.data.distributed": "torch.utils.data",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.nn.utils.clip_grad": "torch.nn.utils",
    "torch.optim.adamw": "torch.optim",
    "torch.distributed.device_mesh": "torch.distributed.device_mesh",
    "accelerate.accelerator": "accelerate",
    "deepspeed.runtime.engine": "deepspeed",
    "torch.utils.checkpoint.checkpoint": "torch.utils.checkpoint.checkpoint",
}
_RENAMED: Mapping[str, str] = {
    "torch.autocast": "torch.amp.autocast",
    "torch.cuda.amp.GradScaler": "torch.amp.GradScaler",
    "torch.concat": "torch.cat",
}
# Before torch 2.3 this name was another thing, composed of FSDP1.
FULLY_SHARD = "torch.distributed.fsdp.fully_shard"
FSDP1 = "torch.distributed.fsdp.FullyShardedDataParallel"
DDP = "torch.nn.parallel.DistributedDataParallel"


def library_name(file: PythonFile, expression: ast.AST) -> str | None:
    """The dotted name of what an expression takes from a library; None for the file's own names."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return None
    root = _imported(file, expression)
    return _public(".".join([root, *reversed(parts)])) if root else None


def _imported(file: PythonFile, name: ast.Name) -> str | None:
    known = bindings(file)
    if name.id not in known.brought and not known.stars:
        return None
    scope = known.scope(name, name.id)
    full = known.imports.get((scope, name.id))
    if full:
        # With alternatives (try ... except ImportError) all are the same thing, or the first is the real one.
        return full[0]
    place = known.place(name)
    alias = known.of.get(place, []) if place else []
    match alias:
        case [only] if only.kind == "assign" and isinstance(only.value, ast.Attribute) and not only.steps:
            return library_name(file, only.value)
        case [] if scope is file.tree.module:
            # A star brings only names that are looked for; the file's own would be bound.
            return f"{known.stars[0]}.{name.id}" if len(known.stars) == 1 else None
    return None


def _public(name: str) -> str:
    module, _, last = name.rpartition(".")
    name = f"{_PUBLIC.get(module, module)}.{last}" if module else last
    return _RENAMED.get(name, name)


def called(file: PythonFile, call: ast.AST) -> str | None:
    """The dotted name of what is called."""
    return file.once(_names_called).get(call)


def _names_called(file: PythonFile) -> dict[ast.AST, str]:
    return {call: name for call in file.tree.calls if (name := library_name(file, call.func))}


def calls_of(file: PythonFile, *names: str) -> list[ast.Call]:
    """Every call of something from a library, in the order of the text."""
    index = file.once(_calls_by_name)
    found = [call for name in names for call in index.get(name, ())]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _calls_by_name(file: PythonFile) -> dict[str, list[ast.Call]]:
    index: dict[str, list[ast.Call]] = {}
    for call, name in file.once(_names_called).items():
        if isinstance(call, ast.Call):
            index.setdefault(name, []).append(call)
    return index


def libraries(file: PythonFile) -> frozenset[str]:
    """Top-level packages that the file imports."""
    return file.once(_libraries)


def _libraries(file: PythonFile) -> frozenset[str]:
    known = bindings(file)
    modules = [*(name for full in known.imports.values() for name in full), *known.stars]
    return frozenset(module.partition(".")[0] for module in modules)


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """An argument by keyword or position; None where it is not written."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    plain = call.args[: position + 1] if position is not None else []
    if position is None or len(plain) <= position or any(isinstance(arg, ast.Starred) for arg in plain):
        return None
    return plain[position]


def is_open(call: ast.Call) -> bool:
    """Whether arguments come out of a mapping or sequence that cannot be seen (``**kwargs``)."""
    return any(keyword.arg is None for keyword in call.keywords) or any(
        isinstance(arg, ast.Starred) for arg in call.args
    )
