import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, called, calls_of, libraries
from dsgen.lint.python.origins import Origin, library_value, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards, optimizer_steps
from dsgen.lint.python.tree import position
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_SCALES = ("GradScaler", "ShardedGradScaler", "scaler", "loss_scale", "grad_scaler", "amp_scaler", "NativeScaler")
_OLD = "torch.cuda.amp.autocast"
_OTHERS = {"accelerate", "deepspeed", "lightning", "pytorch_lightning", "lightning_fabric", "apex", "colossalai"}


@rule(
    "TC401",
    kinds=("python",),
    source="torch docs of torch.amp; tests/conformance/test_training_claims.py",
)
def fp16_autocast_without_loss_scaling(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A loss is computed under fp16 autocast and back-propagated without a ``GradScaler``.

    Gradients below 6e-8 become zero in fp16, and those of large models mostly lie there or near; nothing says so. Scale
    the loss, or use bfloat16, whose range is that of float32. ``autocast("cuda")`` without a dtype is fp16.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(batch).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```
    """
    if any(word in file.tree.words for word in _SCALES) or libraries(file) & _OTHERS or wraps_by(file, "deepspeed"):
        return
    if any("scaler" in word.lower() for word in file.tree.words):
        return
    steps = {file.tree.function(update.call) for update in optimizer_steps(file)}
    passes = [back for back in backwards(file) if back.driver == "plain" and file.tree.function(back.call) in steps]
    for call in calls_of(file, "torch.amp.autocast", _OLD):
        around = file.tree.parent.get(call)
        holder = file.tree.parent.get(around) if isinstance(around, ast.withitem) else None
        if holder is None or not _is_half(file, call) or _may_be_off(file, call):
            continue
        for back in passes:
            if file.tree.function(back.call) is file.tree.function(call) and _made_in(file, back.loss, holder):
                yield warning(
                    call,
                    "fp16 autocast without loss scaling: small gradients become zero, without a word",
                    help="scale the loss with torch.amp.GradScaler, or use dtype=torch.bfloat16, which needs no "
                    "scaling",
                    related=((back.call, "the unscaled backward pass"),),
                )
                break


def _may_be_off(file: PythonFile, call: ast.Call) -> bool:
    return argument(call, "enabled", 0 if called(file, call) == _OLD else None) is not None


def _is_half(file: PythonFile, call: ast.Call) -> bool:
    dtype = argument(call, "dtype", 1)
    device = argument(call, "device_type", 0)
    on_gpu = called(file, call) == _OLD or (isinstance(device, ast.Constant) and device.value == "cuda")
    if dtype is None:
        return on_gpu and not any(keyword.arg is None for keyword in call.keywords)
    return {library_value(file, o) for o in origins(file, dtype)} <= {"torch.float16", "torch.half"} and bool(
        origins(file, dtype)
    )


def _made_in(file: PythonFile, loss: ast.expr, holder: ast.AST) -> bool:
    """Whether the loss comes out of the autocast block, and the backward pass uses it in the same pass."""
    made: set[Origin] = set(origins(file, loss))
    inside = any(file.tree.within(origin.node, holder) for origin in made)
    return inside and position(loss) > position(holder)
