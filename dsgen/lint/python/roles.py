"""Who does what in a training loop: backward passes, and the steps of optimizers, schedulers and engines."""

import ast
import re
from dataclasses import dataclass
from typing import Literal

from dsgen.lint.python.models import is_accelerator, is_fabric, receiver, wraps_of
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile

Driver = Literal["plain", "scaler", "accelerate", "deepspeed", "fabric", "other"]
"""Who runs a backward pass; other: something that this linter does not know."""

Stepped = Literal["optimizer", "scaler", "scheduler", "deepspeed", "accelerate"]

# More than any training file has; a bound on what hostile files cost.
_MOST = 200


@dataclass(frozen=True, slots=True)
class Backward:
    """One backward pass."""

    call: ast.Call
    driver: Driver
    loss: ast.expr


@dataclass(frozen=True, slots=True)
class Update:
    """One ``step()``: of an optimizer, by itself or through a scaler; of a DeepSpeed engine; of a scheduler."""

    call: ast.Call
    what: Stepped
    target: ast.expr
    """The optimizer, scheduler or engine."""


def backwards(file: PythonFile) -> list[Backward]:
    """Every backward pass."""
    return file.once(_backwards)


def _backwards(file: PythonFile) -> list[Backward]:
    found = []
    for call in file.tree.methods_called("backward", "manual_backward")[:_MOST]:
        owner = receiver(call)
        assert owner is not None
        if called(file, call) == "torch.autograd.backward":
            found.append(Backward(call, "plain", call.args[0] if call.args else owner))
            continue
        given = [arg for arg in call.args if not isinstance(arg, ast.Starred)]
        if not given or any(keyword.arg in ("gradient", "inputs", "retain_graph") for keyword in call.keywords):
            found.append(_of_tensor(file, call, owner) if not given else Backward(call, "other", given[0]))
        else:
            found.append(Backward(call, _driver(file, owner), given[0]))
    return found


def _of_tensor(file: PythonFile, call: ast.Call, owner: ast.expr) -> Backward:
    """``loss.backward()``, or ``scaler.scale(loss).backward()`` (the scaled loss can have a name of its own)."""
    for node in (owner, *(origin.node for origin in origins(file, owner) if not origin.steps)):
        match node:
            case ast.Call(func=ast.Attribute(attr="scale"), args=[loss, *_]):
                return Backward(call, "scaler", loss)
    return Backward(call, "plain", owner)


def _driver(file: PythonFile, owner: ast.expr) -> Driver:
    if is_accelerator(file, owner):
        return "accelerate"
    if is_fabric(file, owner):
        return "fabric"
    if any(wrap.wrapper == "deepspeed" for wrap in wraps_of(file, owner)):
        return "deepspeed"
    return "other"


def updates(file: PythonFile) -> list[Update]:
    """Every step of something known."""
    return file.once(_updates)


def _updates(file: PythonFile) -> list[Update]:
    found = []
    for call in file.tree.methods_called("step")[:_MOST]:
        owner = receiver(call)
        assert owner is not None
        what = _stepped(file, call, owner)
        if what == "scaler":
            found.append(Update(call, what, call.args[0]))
        elif what is not None:
            found.append(Update(call, what, owner))
    return found


def optimizer_steps(file: PythonFile) -> list[Update]:
    """Those that update weights by a plain optimizer."""
    return [update for update in updates(file) if update.what in ("optimizer", "scaler")]


_OPTIMIZERS = re.compile(
    r"""torch\.optim\.[A-Z]\w*|bitsandbytes\.optim\.\w+|torchao\.optim\.\w+|apex\.optimizers\.\w+|lion_pytorch\.Lion"""
    r"""|transformers\.(optimization\.)?(AdamW|Adafactor)|deepspeed\.ops\.(adam|lion|adagrad|lamb)\.\w+"""
)
_SCHEDULERS = re.compile(
    r"torch\.optim\.lr_scheduler\.(?!ReduceLROnPlateau)[A-Z]\w*|transformers\.(optimization\.)?get_\w*schedule\w*"
)
_OPTIMIZER_NAME = re.compile(r"(.*_)?(opt|optim|optimizer|optimiser)(_[a-z0-9])?", re.IGNORECASE)
_SCHEDULER_NAME = re.compile(r"(.*_)?(sched|scheduler|lr_sched)", re.IGNORECASE)


def is_optimizer_call(file: PythonFile, node: ast.AST) -> bool:
    """Whether an expression makes an optimizer of a known library."""
    name = called(file, node)
    return bool(name) and "lr_scheduler" not in str(name) and bool(_OPTIMIZERS.fullmatch(str(name)))


def is_scheduler_call(file: PythonFile, node: ast.AST) -> bool:
    """Whether an expression makes a learning rate schedule that is stepped without a metric."""
    return bool(_SCHEDULERS.fullmatch(called(file, node) or ""))


def is_scaler_call(file: PythonFile, node: ast.AST) -> bool:
    """Whether an expression makes a loss scaler."""
    name = called(file, node)
    return name in ("torch.amp.GradScaler", "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler")


def is_always_on(file: PythonFile, scaler: ast.AST) -> bool:
    """Whether a scaler scales in every run: nothing decides about ``enabled``."""
    on = argument(scaler, "enabled") if isinstance(scaler, ast.Call) else None
    return is_scaler_call(file, scaler) and (on is None or (isinstance(on, ast.Constant) and on.value is True))


def _stepped(file: PythonFile, call: ast.Call, owner: ast.expr) -> Stepped | None:
    made = origins(file, owner)
    if any(is_scaler_call(file, origin.node) for origin in made) or (call.args and _name(owner) in _SCALER_NAMES):
        return "scaler" if call.args else None
    wrappers = {wrap.wrapper for wrap in wraps_of(file, owner)}
    if "deepspeed" in wrappers:
        return "deepspeed"
    if any(is_scheduler_call(file, origin.node) for origin in made) or _SCHEDULER_NAME.fullmatch(_name(owner)):
        return "scheduler"
    if "accelerate" in wrappers or "fabric" in wrappers:
        return "accelerate"
    if any(is_optimizer_call(file, origin.node) for origin in made) or _OPTIMIZER_NAME.fullmatch(_name(owner)):
        return "optimizer"
    return None


_SCALER_NAMES = {"scaler", "grad_scaler", "gradscaler", "loss_scaler"}


def _name(expression: ast.expr) -> str:
    return str(getattr(expression, "attr", None) or getattr(expression, "id", ""))
