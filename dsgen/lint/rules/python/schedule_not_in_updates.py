import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import Origin, origins, same
from dsgen.lint.python.periods import period_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import Update, is_scheduler_call, updates
from dsgen.lint.python.windows import Window, is_one, show, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Where a schedule is told how long it is.
_LENGTHS = ("total_iters", "T_max", "total_steps", "num_training_steps", "max_iters", "steps_per_epoch")
_PLACES = {
    "torch.optim.lr_scheduler.LinearLR": ("total_iters", 3),
    "torch.optim.lr_scheduler.CosineAnnealingLR": ("T_max", 1),
    "torch.optim.lr_scheduler.PolynomialLR": ("total_iters", 1),
    "transformers.get_linear_schedule_with_warmup": ("num_training_steps", 2),
    "transformers.get_cosine_schedule_with_warmup": ("num_training_steps", 2),
    "transformers.get_scheduler": ("num_training_steps", 3),
}


@rule(
    "TC501",
    kinds=("python",),
    source="torch/optim/lr_scheduler.py: step() counts calls; tests/conformance/test_training_claims.py",
)
def schedule_not_in_updates(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A learning rate schedule that is counted in one unit and stepped in another, under gradient accumulation.

    Its length is the number of updates (batches divided by k), but it is stepped with every micro-batch: it is over
    after
    1/k of the training. Or its length is the number of batches, and it is stepped with every update: it never gets
    further than 1/k of its way.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=len(loader) // 4)
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        scheduler.step()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=len(loader))
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=len(loader) // 4)
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    ```

    A schedule whose length cannot be seen is left alone.
    """
    seen = set()
    for window in windows(file):
        if window.gate is None or is_one(file, window.size) or window.backward.driver not in ("plain", "scaler"):
            continue
        for update in updates(file):
            if (
                update.what == "scheduler"
                and update.call not in seen
                and file.tree.loops(update.call)[:1] == [window.loop]
            ):
                seen.add(update.call)
                yield from _judge(file, window, update)


def _judge(file: PythonFile, window: Window, update: Update) -> Iterator[Mark]:
    assert window.gate is not None
    guards = file.tree.guards(update.call, window.loop)
    gate = period_of(file, guards, update.call)
    gated = gate is not None and gate.first == window.gate.first and same(file, gate.size, window.gate.size)
    if gate is not None and not gated:
        return
    units = {_unit(file, origin.node, window.gate.size) for origin in origins(file, update.target)}
    size = show(window.size)
    if units == {"updates"} and not guards:
        yield warning(
            update.call,
            f"the schedule is as long as the number of updates, but stepped with every micro-batch: it ends after "
            f"1/{size} "
            "of the training",
            help="step it once per update, beside optimizer.step(); or give its length in micro-batches",
        )
    elif units == {"batches"} and gated:
        yield warning(
            update.call,
            f"the schedule is as long as the number of micro-batches, but stepped once per update: it gets to "
            f"1/{size} of "
            "its way only",
            help=f"give its length in updates: divide by {size}",
        )


def _unit(file: PythonFile, node: ast.AST, size: ast.expr) -> str | None:
    """What a schedule's length counts: updates, batches, or something that cannot be seen."""
    if not isinstance(node, ast.Call) or not is_scheduler_call(file, node):
        return None
    name, place = _PLACES.get(called(file, node) or "", ("", None))
    length = argument(node, name, place) if name else None
    length = length or next((k.value for k in node.keywords if k.arg in _LENGTHS), None)
    return _counts(file, length, size, 0) if length is not None else None


def _counts(file: PythonFile, length: ast.AST, size: ast.expr, depth: int) -> str | None:
    if depth > 12:
        return None
    units = set()
    for origin in origins(file, length) if isinstance(length, ast.expr) else ():
        match origin:
            case Origin(ast.BinOp(op=ast.FloorDiv() | ast.Div(), left=left, right=right), ()):
                inner = _counts(file, left, size, depth + 1)
                units.add("updates" if inner == "batches" and same(file, right, size) else None)
            case Origin(ast.BinOp(op=ast.Mult(), left=left, right=right), ()):
                parts = {_counts(file, left, size, depth + 1), _counts(file, right, size, depth + 1)} - {None}
                units.add(parts.pop() if len(parts) == 1 else None)
            case Origin(ast.Call(func=ast.Name(id="len"), args=[_]), ()):
                units.add("batches")
            case Origin(ast.Call(func=ast.Name(id="int" | "round" | "max"), args=[*values]), ()):
                units.update({_counts(file, value, size, depth + 1) for value in values} - {None} or {None})
            case Origin(ast.Call(args=[value]) as call, ()) if called(file, call) in ("math.ceil", "math.floor"):
                units.add(_counts(file, value, size, depth + 1))
            case _:
                units.add(None)
    return units.pop() if len(units) == 1 else None
