"""What an FSDP call says: strategy, use_orig_params, policy, and which modules become units."""

import ast

from dsgen.lint.python.bindings import ITEM
from dsgen.lint.python.models import Wrap, wraps_by
from dsgen.lint.python.names import argument, called, is_open
from dsgen.lint.python.origins import Origin, library_value, origins
from dsgen.lint.python.read import PythonFile

UNKNOWN = "?"


def strategy(file: PythonFile, wrap: Wrap) -> str:
    """The sharding strategy of an FSDP1 call: FULL_SHARD where none is given, UNKNOWN where it is computed."""
    given = argument(wrap.call, "sharding_strategy", 2)
    if given is None:
        return UNKNOWN if is_open(wrap.call) else "FULL_SHARD"
    names = set()
    for origin in origins(file, given):
        full = library_value(file, origin) or ""
        names.add(full.rpartition(".")[2] if full.startswith("torch.distributed.fsdp.ShardingStrategy") else UNKNOWN)
    return names.pop() if len(names) == 1 else UNKNOWN


def keeps_parameters(file: PythonFile, wrap: Wrap) -> bool | None:
    """``use_orig_params`` of an FSDP1 call: False where it is not given; None where it is computed."""
    given = argument(wrap.call, "use_orig_params")
    if given is None:
        return None if is_open(wrap.call) else False
    values = {o.node.value for o in origins(file, given) if isinstance(o.node, ast.Constant) and not o.steps}
    plain = all(isinstance(o.node, ast.Constant) and not o.steps for o in origins(file, given))
    return bool(values.pop()) if plain and len(values) == 1 else None


def has_policy(wrap: Wrap) -> bool:
    """Whether an FSDP1 call may make more than one unit: a policy is given, or something that cannot be seen."""
    given = argument(wrap.call, "auto_wrap_policy", 4)
    if given is None:
        return is_open(wrap.call)
    return not (isinstance(given, ast.Constant) and given.value is None)


def blocks_and_roots(file: PythonFile) -> tuple[list[Wrap], list[Wrap]]:
    """``fully_shard`` calls on parts of a model, and on whole models."""
    blocks: list[Wrap] = []
    roots: list[Wrap] = []
    for wrap in wraps_by(file, "fsdp2"):
        made = origins(file, wrap.subject) if wrap.subject is not None else frozenset()
        (blocks if made and all(is_part(origin) for origin in made) else roots).append(wrap)
    return blocks, roots


def is_part(origin: Origin) -> bool:
    """A block of a model: an attribute of it, or an item of a loop over one."""
    return any(isinstance(step, str) for step in origin.steps)


def is_item(origin: Origin) -> bool:
    """One of many: an item of a loop."""
    return ITEM in origin.steps


def model_of(origin: Origin) -> ast.AST:
    """What makes the model that a part belongs to."""
    return origin.node


def policy_call(file: PythonFile, wrap: Wrap) -> ast.Call | None:
    """The call that makes a mixed precision policy of ``fully_shard``."""
    given = argument(wrap.call, "mp_policy")
    for origin in origins(file, given) if given is not None else ():
        if called(file, origin.node) == "torch.distributed.fsdp.MixedPrecisionPolicy" and isinstance(
            origin.node, ast.Call
        ):
            return origin.node
    return None
