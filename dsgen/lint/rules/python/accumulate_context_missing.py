import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import receiver
from dsgen.lint.python.names import argument, called, calls_of, is_open
from dsgen.lint.python.origins import constant, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC216", kinds=("python",), source="accelerate/accelerator.py: accumulate, _do_sync; backward divides")
def accumulate_context_missing(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``Accelerator(gradient_accumulation_steps=k)`` without ``accelerator.accumulate``: no window.

    ``backward`` still divides by k, so there are k times as many updates, each with a k-th of the gradient.

    ```python bad
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        accelerator.backward(model(batch))
        optimizer.step()
        optimizer.zero_grad()
    ```

    ```python good
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    # Whoever handles syncing in another way, or uses DeepSpeed (which counts itself), is left alone.
    if file.tree.words & {"accumulate", "no_sync", "sync_gradients", "gradient_state", "_do_sync", "deepspeed_plugin"}:
        return
    for call in calls_of(file, "accelerate.Accelerator"):
        steps = argument(call, "gradient_accumulation_steps")
        if steps is None or is_open(call) or "deepspeed" in " ".join(file.tree.words).lower():
            continue
        count = constant(file, steps)
        if count == 1 or (count is None and not isinstance(steps, ast.Name | ast.Attribute)):
            continue
        used = [b for b in backwards(file) if b.driver == "accelerate" and _of(file, b.call, call)]
        plain = [
            b for b in used if file.tree.loops(b.call) and not file.tree.guards(b.call, file.tree.loops(b.call)[0])
        ]
        if plain and len(used) == len(plain) and not any(isinstance(n, ast.Mod) for n in file.tree.nodes):
            yield error(
                call,
                "gradient_accumulation_steps is given, but accelerator.accumulate(model) is not used: every "
                "micro-batch "
                "makes an update, with its gradient divided by that number",
                help="run each micro-batch inside `with accelerator.accumulate(model):`",
                related=((plain[0].call, "the backward pass"),),
            )


def _of(file: PythonFile, backward: ast.Call, made: ast.Call) -> bool:
    owner = receiver(backward)
    return owner is not None and called(file, made) is not None and any(o.node is made for o in origins(file, owner))
