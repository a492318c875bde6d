"""Literal calls in a Python file: TrainingArguments(...) and its kin, LoraConfig(...), from_pretrained(...).

The text is parsed and looked at, never run: a value that is not written out is unknown.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsgen.errors import InputError, Place, Problem
from dsgen.formats.hf.read.table import DEFAULTS
from dsgen.reading import LeftOut

_CONFIGS = ("TrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "ORPOConfig", "KTOConfig", "RewardConfig")
_PLAIN = ("TrainingArguments", "Seq2SeqTrainingArguments")
_LORA = {"r": "lora_r", "lora_alpha": "lora_alpha", "lora_dropout": "lora_dropout", "target_modules": "target_modules"}
_PARALLEL = {name: name for name in ("sp_size", "tp_size", "cp_size")}
_MODELS = ("from_pretrained",)


@dataclass(frozen=True, slots=True)
class FromCode:
    """The arguments that a file writes out."""

    arguments: Mapping[str, Any]
    lines: Mapping[str, int]
    unknown: tuple[LeftOut, ...]


def read_code(text: str, file: str) -> FromCode:
    """Raises InputError where the text is no Python, or holds no such call."""
    tree = _parsed(text, file)
    constants = dict(_constants(tree))
    arguments: dict[str, Any] = {}
    lines: dict[str, int] = {}
    unknown: list[LeftOut] = []
    found = False
    for call in _calls(tree):
        name = _name(call.func)
        if name.endswith(_CONFIGS):
            if found:
                unknown.append(LeftOut(f"{name} in line {call.lineno}", None, "a second call; the first was read"))
                continue
            found = True
            _keywords(call, {}, constants, arguments, lines, unknown)
            if name in _PLAIN and not any(left.key == "**" for left in unknown):
                computed = {left.key for left in unknown}
                arguments |= {
                    key: value for key, value in DEFAULTS.items() if key not in arguments and key not in computed
                }
        elif name == "LoraConfig":
            _keywords(call, _LORA, constants, arguments, lines, unknown)
            arguments.setdefault("use_peft", True)
            lines.setdefault("use_peft", call.lineno)
        elif name == "ParallelismConfig":
            _keywords(call, _PARALLEL, constants, arguments, lines, unknown)
        elif name == "BitsAndBytesConfig":
            _keywords(call, {"load_in_4bit": "load_in_4bit"}, constants, arguments, lines, unknown)
        elif name in _MODELS and _is_of_a_model(call):
            _model(call, constants, arguments, lines)
    if not found:
        help = f"such as TrainingArguments(...) or SFTConfig(...), written out; known are {', '.join(_CONFIGS)}"
        raise InputError(Problem("no training arguments are written out here", Place(file), help))
    return FromCode(arguments, lines, tuple(unknown))


def _parsed(text: str, file: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the text, of no use to whoever asks for a spec
            return ast.parse(text)
    except SyntaxError as error:
        raise InputError(Problem(f"is no Python: {error.msg}", Place(file, error.lineno, error.offset))) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(Problem(f"is no Python that can be read: {error}", Place(file))) from None


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls from the top of the file down."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    yield from sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Names that are bound once, to something written out."""
    bound: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                value = getattr(node, "value", None)
                literal = value if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None else target
                bound.setdefault(target.id, []).append(literal)
    changed = _changed(tree)
    known: dict[str, Any] = {}
    for name, values in bound.items():
        if len(values) == 1:
            is_known, value = _literal(values[0], known)
            if is_known and isinstance(value, dict):
                value = {key: inner for key, inner in value.items() if key not in changed.get(name, ())}
            if is_known:
                known[name] = value
    yield from known.items()


def _changed(tree: ast.Module) -> Mapping[str, set[Any]]:
    """Keys of named mappings that are assigned to: ``arguments["max_steps"] = ...``."""
    found: dict[str, set[Any]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            match target:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                    found.setdefault(name, set()).add(key)
    return found


def _literal(node: ast.expr, constants: Mapping[str, Any]) -> tuple[bool, Any]:
    """Whether the value is written out, and the value."""
    if isinstance(node, ast.Name) and node.id in constants:
        return True, constants[node.id]
    if isinstance(node, ast.BinOp):
        return _computed(node, constants)
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[ast.Name(id=name)], keywords=[]) if name in constants:
            return isinstance(constants[name], dict), constants[name]
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_LARGEST = 10**15


def _computed(node: ast.BinOp, constants: Mapping[str, Any]) -> tuple[bool, Any]:
    """Sums and products of numbers that are written out, such as 64 // batch."""
    sides = [_literal(side, constants) for side in (node.left, node.right)]
    values = [value for known, value in sides if known and isinstance(value, int | float) and abs(value) < _LARGEST]
    apply = _OPERATIONS.get(type(node.op))
    if apply is None or len(values) < 2 or any(isinstance(value, bool) for value in values):
        return False, None
    try:
        return True, apply(*values)
    except (ArithmeticError, ValueError):
        return False, None


def _keywords(
    call: ast.Call,
    names: Mapping[str, str],
    constants: Mapping[str, Any],
    arguments: dict[str, Any],
    lines: dict[str, int],
    unknown: list[LeftOut],
) -> None:
    """Adds the call's keywords; ``names``: which of them, and under which name; all where it is empty."""
    for keyword in call.keywords:
        if keyword.arg is None:
            known, value = _literal(keyword.value, constants)
            if known and isinstance(value, dict):
                arguments |= {str(key): inner for key, inner in value.items()}
                lines |= {str(key): keyword.value.lineno for key in value}
            else:
                unknown.append(LeftOut("**", None, f"line {call.lineno} passes arguments that are not written out"))
            continue
        if names and keyword.arg not in names:
            continue
        key = names.get(keyword.arg, keyword.arg)
        known, value = _literal(keyword.value, constants)
        if known:
            arguments[key] = value
            lines[key] = keyword.value.lineno
        else:
            unknown.append(LeftOut(key, None, f"line {keyword.value.lineno} computes it: its value is not written out"))


def _is_of_a_model(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner is not None and "Model" in (_name(owner) or "")


def _model(call: ast.Call, constants: Mapping[str, Any], arguments: dict[str, Any], lines: dict[str, int]) -> None:
    known, value = _literal(call.args[0], constants) if call.args else (False, None)
    if known and isinstance(value, str):
        arguments.setdefault("model_name_or_path", value)
        lines.setdefault("model_name_or_path", call.lineno)
    for keyword in call.keywords:
        if keyword.arg == "attn_implementation":
            known, value = _literal(keyword.value, constants)
            if known:
                arguments.setdefault("attn_implementation", value)
                lines.setdefault("attn_implementation", keyword.value.lineno)
