"""DeepSpeed configs that stand in code as dict literals, as the rules for configs see them.

What is not literal is unknown: a finding counts only if it holds both where the unknown keys are absent and where
their values are left open. A dict to which something is added later, or with ``**``, is not looked at.
"""

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dsgen.documents.document import Document, Lines, Member, Node, array, mapping
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.kinds import Held
from dsgen.lint.python.layout import layout
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.target import LintTarget

if TYPE_CHECKING:
    from dsgen.target import Loader

# Who takes a config, under which argument, and at which place.
_TAKERS: "dict[str, tuple[Loader, str, int | None]]" = {
    "deepspeed.initialize": ("deepspeed", "config", 10),
    "transformers.TrainingArguments": ("transformers", "deepspeed", None),
    "transformers.Seq2SeqTrainingArguments": ("transformers", "deepspeed", None),
    "trl.SFTConfig": ("transformers", "deepspeed", None),
    "accelerate.DeepSpeedPlugin": ("accelerate", "hf_ds_config", 0),
    "accelerate.utils.DeepSpeedPlugin": ("accelerate", "hf_ds_config", 0),
}
# Wherever a dict with these goes, it is a whole DeepSpeed config.
_STAGE = ("zero_optimization", "stage")
_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")
_CHANGING = ("update", "setdefault", "pop", "popitem", "clear")
_OPEN = "auto"
"""Stands for an unknown value: rules take it for a value that somebody else fills in, if nobody knows who loads it."""


def configs_in_code(file: PythonFile, target: LintTarget) -> list[Held]:
    """Every config that a file writes as a dict."""
    if not file.is_read or "eepspeed" not in file.text:
        return []
    lines = Lines(file.text)
    held = []
    for written, loader in _written(file).items():
        known = _Reader(file, lines, keep_unknown=False)
        root = known.node(written)
        left_open = _Reader(file, lines, keep_unknown=True).node(written) if known.met_unknown else None
        held.append(
            Held(
                config=_config(file, root, partial(layout, file.text, written, known.span)),
                target=replace(target, loaded_by=loader or target.loaded_by),
                left_open=_config(file, left_open) if left_open else None,
            )
        )
    return held


def _config(file: PythonFile, root: Node, laid_out: Callable[[], Document] | None = None) -> ConfigFile:
    config = ConfigFile(Document(file.text, root), dialect="python", prefix=None)
    config.layout = laid_out
    return config


def _written(file: PythonFile) -> "dict[ast.Dict, Loader | None]":
    """Dict literals that are configs, with who takes them; None where that cannot be seen."""
    found: dict[ast.Dict, Loader | None] = {
        node: None for node in file.tree.nodes if isinstance(node, ast.Dict) and _is_whole_config(node)
    }
    changed = _changed_names(file)
    spoilt = set()
    for call in file.tree.calls:
        taker = _TAKERS.get(called(file, call) or "")
        given = argument(call, taker[1], taker[2]) if taker else None
        if taker is None or given is None:
            continue
        made = [origin.node for origin in origins(file, given) if not origin.steps]
        for node in made:
            if isinstance(node, ast.Dict):
                found[node] = taker[0] if len(made) == 1 else None
                spoilt |= {node} if _name(given) in changed else set()
    return {
        node: loader
        for node, loader in found.items()
        if node not in spoilt and None not in node.keys and not _names_of(file, node) & changed
    }


def _is_whole_config(node: ast.Dict) -> bool:
    section = _value(node, _STAGE[0])
    staged = isinstance(section, ast.Dict) and _value(section, _STAGE[1]) is not None
    return staged and any(_value(node, key) is not None for key in _BATCH)


def _value(node: ast.Dict, key: str) -> ast.expr | None:
    pairs = zip(node.keys, node.values, strict=True)
    return next((value for known, value in pairs if isinstance(known, ast.Constant) and known.value == key), None)


def _changed_names(file: PythonFile) -> set[str]:
    """Names of what something is put into, or taken out of."""
    changed = {
        _name(call.func.value) for call in file.tree.methods_called(*_CHANGING) if isinstance(call.func, ast.Attribute)
    }
    for node in file.tree.nodes:
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed.add(_name(node))
        elif isinstance(node, ast.AugAssign):
            changed.add(_name(node.target))
    return {name for name in changed if name}


def _name(expression: ast.expr) -> str | None:
    """The variable or attribute of which something is a part."""
    while isinstance(expression, ast.Subscript):
        expression = expression.value
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else None


def _names_of(file: PythonFile, node: ast.Dict) -> set[str]:
    """The names to which a dict is given where it is written."""
    match file.tree.parent.get(node):
        case ast.Assign(targets=targets):
            return {name for target in targets if (name := _name(target))}
        case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
            name = _name(target)
            return {name} if name else set()
    return set()


class _Reader:
    """From the syntax tree to a document; notes whether it met what is not literal."""

    def __init__(self, file: PythonFile, lines: Lines, *, keep_unknown: bool) -> None:
        self._file = file
        self._lines = lines
        self._keep_unknown = keep_unknown
        self.met_unknown = False

    def node(self, expression: ast.expr) -> Node:
        """The value with its places."""
        start, end = self.span(expression)
        match expression:
            case ast.Dict(keys=keys, values=values) if all(map(_is_text, keys)):
                members = [self._member(key, value) for key, value in zip(keys, values, strict=True) if key]
                return mapping([member for member in members if member], start, end)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) if all(map(_is_literal, parts)):
                return array([self.node(part) for part in parts], start, end)
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return Node(value, start, end)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return Node(-value, start, end)
        self.met_unknown = True
        return Node(_OPEN, start, end)

    def _member(self, key: ast.expr, value: ast.expr) -> Member | None:
        if not _is_literal(value):
            self.met_unknown = True
            if not self._keep_unknown:
                return None
        start, end = self.span(key)
        name = key.value if isinstance(key, ast.Constant) else ""
        return Member(str(name), start, end, self.node(value), None)

    def span(self, expression: ast.expr) -> tuple[int, int]:
        """Offsets of an expression."""
        line, column, end_line, end_column = self._file.locate(expression)
        return self._lines.offset(line, column), self._lines.offset(end_line, end_column)


def _is_literal(node: ast.expr) -> bool:
    """Whether it is written out, at least on its own level."""
    match node:
        case ast.Dict(keys=keys):
            return all(map(_is_text, keys))
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(map(_is_literal, parts))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return isinstance(operand, ast.Constant) and type(operand.value) in (int, float)
        case ast.Constant(value=value):
            return value is None or isinstance(value, bool | int | float | str)
    return False


def _is_text(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str)
