"""Configs that code names: a dict that is written out, or a file that lies beside the code and can be read."""

import ast
import stat
from pathlib import Path
from typing import Any

from dsgen.documents.source import MAX_BYTES
from dsgen.lint.config_file import read_config
from dsgen.lint.python.bindings import bindings
from dsgen.lint.python.models import Wrap
from dsgen.lint.python.names import argument, called, calls_of
from dsgen.lint.python.origins import Origin, origins
from dsgen.lint.python.read import PythonFile
from dsgen.target import Loader

UNKNOWN = object()
"""A value that code computes."""

TRAINING_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments", "trl.SFTConfig")
_DEPTH = 12


def engine_config(file: PythonFile, wrap: Wrap) -> dict[str, Any] | None:
    """The config that ``deepspeed.initialize`` is given, where it can be seen."""
    for name, place in (("config", 10), ("config_params", None)):
        given = argument(wrap.call, name, place)
        if given is not None:
            return config_of(file, given, "deepspeed")
    return None


def trainer_config(file: PythonFile, call: ast.Call, key: str = "deepspeed") -> dict[str, Any] | None:
    """The config that ``TrainingArguments`` names under a key."""
    given = argument(call, key)
    return config_of(file, given, "transformers") if given is not None else None


def training_arguments(file: PythonFile) -> list[ast.Call]:
    """Every ``TrainingArguments(...)`` and its like."""
    return calls_of(file, *TRAINING_ARGUMENTS)


def fsdp_is_on(file: PythonFile, call: ast.Call) -> bool:
    """Whether ``TrainingArguments`` switch FSDP on: ``fsdp="full_shard"``, ``True``, ``["full_shard"]``."""
    fsdp = argument(call, "fsdp")
    made = [origin.node for origin in origins(file, fsdp)] if fsdp is not None else []
    return bool(made) and all(
        (isinstance(node, ast.Constant) and bool(node.value)) or (isinstance(node, ast.List) and bool(node.elts))
        for node in made
    )


def config_of(file: PythonFile, expression: ast.expr, loader: Loader) -> dict[str, Any] | None:
    """The values of a config; UNKNOWN stands where code computes one. None where it cannot be seen at all."""
    found = origins(file, expression)
    if len(found) != 1 or _changed(file, expression):
        return None
    (origin,) = found
    match origin:
        case Origin(ast.Dict() as written, ()):
            value = literal(file, written)
            return value if isinstance(value, dict) else None
        case Origin(ast.Constant(value=str() as name), ()):
            return _beside(file, name, loader)
        case Origin(ast.Call() as call, ()) if called(file, call) == "json.load" and call.args:
            return _loaded(file, call.args[0], loader)
    return None


def _changed(file: PythonFile, expression: ast.expr) -> bool:
    """Whether something is put into it after it was made."""
    known = bindings(file)
    place = known.place(expression)
    return place is not None and any(binding.kind == "element" for binding in known.of.get(place, []))


def _loaded(file: PythonFile, opened: ast.expr, loader: Loader) -> dict[str, Any] | None:
    """``json.load(open("ds_config.json"))``."""
    for origin in origins(file, opened):
        match origin.node:
            case ast.Call(func=ast.Name(id="open"), args=[ast.Constant(value=str() as name), *_]):
                return _beside(file, name, loader)
    return None


def _beside(file: PythonFile, name: str, loader: Loader) -> dict[str, Any] | None:
    """A file named from where the code lies. Nothing but a regular file of a config's size is read."""
    if file.folder is None or not name.endswith((".json", ".hjson")):
        return None
    path = file.folder / Path(name)
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
            return None
        value = read_config(path.read_bytes(), loader).value
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def literal(file: PythonFile, node: ast.AST, depth: int = 0) -> Any:
    """The value that an expression is written as; UNKNOWN where it is computed."""
    if depth > _DEPTH:
        return UNKNOWN
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Dict(keys=keys, values=values):
            if any(key is None for key in keys):
                return UNKNOWN
            pairs = zip(keys, values, strict=True)
            return {k.value: literal(file, v, depth + 1) for k, v in pairs if isinstance(k, ast.Constant)}
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [literal(file, part, depth + 1) for part in parts]
        case ast.Name() | ast.Attribute():
            found = origins(file, node)
            if len(found) == 1:
                (origin,) = found
                if not origin.steps and not isinstance(origin.node, ast.Name | ast.Attribute):
                    return literal(file, origin.node, depth + 1)
    return UNKNOWN


def look(config: dict[str, Any] | None, *path: str, default: Any = None) -> Any:
    """The value at a path of keys; UNKNOWN where it cannot be told."""
    value: Any = UNKNOWN if config is None else config
    for key in path:
        if value is UNKNOWN:
            return UNKNOWN
        if not isinstance(value, dict) or key not in value:
            return default
        value = value[key]
    return value


def stage_of(config: dict[str, Any] | None) -> int | None:
    """The ZeRO stage of a config; None where it cannot be told."""
    stage = look(config, "zero_optimization", "stage", default=0)
    return stage if type(stage) is int else None
