"""FSDP2 code as wishes: what calls of fully_shard and its policies write out. The text is looked at, never run."""

import ast
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.errors import InputError, Place, Problem
from dsgen.reading import LeftOut, Reading, Said, SpecPath, wishes_of_said

_TYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_CONSTANTS: Mapping[str, SpecPath] = {
    "MICRO_BATCH": ("want", "micro_batch"),
    "ACCUMULATION": ("want", "accumulation"),
    "REDUCE_EACH_MICRO_BATCH": ("want", "reduce_each_micro_batch"),
    "SHARD_GROUP": ("want", "shard_group"),
    "SEQUENCE_LENGTH": ("training", "sequence_length"),
    "CLIPPING": ("training", "gradient_clipping"),
    "WARMUP_STEPS": ("training", "scheduler", "warmup_steps"),
    "TOTAL_STEPS": ("training", "scheduler", "total_steps"),
    "LEAST_RATE": ("training", "scheduler", "min_lr_ratio"),
}
"""What dsgen's own folders call them (templates/fsdp2)."""
_OPTIMIZERS = {"AdamW": "adamw", "Adam": "adam", "SGD": "sgd"}
_WRAPPERS = ("checkpoint_wrapper", "apply_activation_checkpointing")


def is_fsdp2(text: str) -> bool:
    """Whether a Python text shards with FSDP2."""
    return "fully_shard(" in text


def read(texts: Mapping[str, str]) -> Reading:
    """What the files of one program fix together.

    Raises InputError where one is no Python, or none calls fully_shard.
    """
    said: dict[SpecPath, Said] = {}
    left: list[LeftOut] = []
    sharded = False
    for name, text in texts.items():
        tree = _parsed(text, name)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        sharded = sharded or any(_name(call) == "fully_shard" for call in calls)
        for each in (*_sharding(calls, left), *_checkpointing(tree), *_training(calls), *_constants(tree)):
            said.setdefault(each.path, each)
        for each in _schedule(calls, said):
            said.setdefault(each.path, each)
    if not sharded:
        raise InputError(Problem("calls no fully_shard", Place(next(iter(texts), "code"))))
    said.setdefault(("training", "precision"), Said(("training", "precision"), "fp32", None, "no MixedPrecisionPolicy"))
    said.setdefault(("want", "checkpointing"), Said(("want", "checkpointing"), "none", None, "nothing is wrapped"))
    for path in (("want", "offload_optimizer"), ("want", "offload_parameters")):
        said.setdefault(path, Said(path, "none", None, "no CPUOffloadPolicy"))
    return Reading(wishes=wishes_of_said(said.values()), said=tuple(said.values()), not_carried=tuple(left))


def _parsed(text: str, name: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise InputError(Problem(f"is no Python: {error.msg}", Place(name, error.lineno, error.offset))) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(Problem(f"is no Python that can be read: {error}", Place(name))) from None


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _sharding(calls: list[ast.Call], left: list[LeftOut]) -> Iterator[Said]:
    """Stage 2 where a unit keeps its weights from forward to backward pass, all of them; else 3.

    The root's own weights are kept by default (torch/distributed/fsdp/_fully_shard/_fully_shard.py:fully_shard), so
    of several calls one that reshards decides.
    """
    shards = [call for call in calls if _name(call) == "fully_shard"]
    if shards:
        resharding = [_keyword(call, "reshard_after_forward") for call in shards]
        keeps = [_literal(node) is False for node in resharding]
        yield Said(("want", "zero_stage"), 2 if all(keeps) else 3, (shards[0].lineno,), "fully_shard")
        left += [
            LeftOut("reshard_after_forward", _literal(node), "a smaller group after the forward pass")
            for node in resharding
            if isinstance(_literal(node), int) and not isinstance(_literal(node), bool)
        ]
    for call in calls:
        if _name(call) == "MixedPrecisionPolicy":
            compute, reduce = (_type(_keyword(call, key)) for key in ("param_dtype", "reduce_dtype"))
            if compute is not None:
                yield Said(("training", "precision"), compute, (call.lineno,), "param_dtype")
            if reduce is not None or compute is not None:
                yield Said(("want", "gradient_precision"), reduce or compute, (call.lineno,), "reduce_dtype")
        elif _name(call) == "CPUOffloadPolicy":
            for path in (("want", "offload_optimizer"), ("want", "offload_parameters")):
                yield Said(path, "cpu", (call.lineno,), "CPUOffloadPolicy")


def _type(node: ast.expr | None) -> str | None:
    name = node.attr if isinstance(node, ast.Attribute) else None
    return _TYPES.get(name or "")


def _checkpointing(tree: ast.Module) -> Iterator[Said]:
    """Every block, one in so many by the step of the loop's range, or with a policy of what is kept."""
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        wraps = [node for node in ast.walk(loop) if isinstance(node, ast.Call) and _name(node) in _WRAPPERS]
        if not wraps:
            continue
        call = loop.iter if isinstance(loop.iter, ast.Call) else None
        step = _literal(call.args[2]) if call is not None and _name(call) == "range" and len(call.args) == 3 else None
        value: Any = "selective" if _keyword(wraps[0], "context_fn") is not None else "full"
        if isinstance(step, int) and step > 1:
            value = {"every": step}
        yield Said(("want", "checkpointing"), value, (wraps[0].lineno,), "checkpoint_wrapper")
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node) in _WRAPPERS:
            yield Said(("want", "checkpointing"), "full", (node.lineno,), _name(node))
            return


def _training(calls: list[ast.Call]) -> Iterator[Said]:
    """A torch optimizer with what its call writes out."""
    for call in calls:
        if _name(call) not in _OPTIMIZERS:
            continue
        section = ("training", "optimizer")
        yield Said((*section, "type"), _OPTIMIZERS[_name(call)], (call.lineno,), _name(call))
        for key in ("lr", "betas", "eps", "weight_decay", "momentum"):
            value = _literal(_keyword(call, key))
            if isinstance(value, int | float | tuple) and not isinstance(value, bool):
                yield Said((*section, key), list(value) if isinstance(value, tuple) else value, (call.lineno,), key)
        return


def _schedule(calls: list[ast.Call], said: Mapping[SpecPath, Said]) -> Iterator[Said]:
    """A rate that falls to a least one does so along a cosine where one is computed, else along a line."""
    section = ("training", "scheduler")
    least, warmup = said.get((*section, "min_lr_ratio")), said.get((*section, "warmup_steps"))
    if least is not None:
        kind = "cosine" if any(_name(call) == "cos" for call in calls) else "linear"
        yield Said((*section, "type"), kind, least.at, "LEAST_RATE")
    elif warmup is not None:
        yield Said((*section, "type"), "constant", warmup.at, "WARMUP_STEPS")


def _constants(tree: ast.Module) -> Iterator[Said]:
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(target, ast.Name) and target.id in _CONSTANTS and isinstance(node, ast.Assign):
            value = _literal(node.value)
            if isinstance(value, int | float):
                yield Said(_CONSTANTS[target.id], value, (node.lineno,), target.id)
