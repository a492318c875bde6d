import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.gradients import torch_clips
from dsgen.lint.python.models import receiver
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards, is_always_on, optimizer_steps
from dsgen.lint.python.tree import position
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC403", kinds=("python",), source="torch/amp/grad_scaler.py:unscale_; torch docs: working with unscaled gradients"
)
def clipped_before_unscaling(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Gradients are clipped while they still carry the loss scale (65536 at first): the clip takes nearly all of them.

    ```python bad
    import torch
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(batch).mean()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```

    ```python good
    import torch
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(batch).mean()).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```
    """
    if "unscale_" in file.tree.words:
        return
    for update in optimizer_steps(file):
        scaler = receiver(update.call)
        if update.what != "scaler" or scaler is None or not _always_on(file, scaler):
            continue
        for clip in torch_clips(file):
            together = file.tree.block(clip) is file.tree.block(update.call) and not file.tree.exclusive(
                clip, update.call
            )
            before = [b for b in backwards(file) if b.driver == "scaler" and position(b.call) < position(clip)]
            if together and before and position(clip) < position(update.call):
                yield error(
                    clip,
                    "the gradients still carry the loss scale here, so the clip shrinks them to next to nothing",
                    help="call scaler.unscale_(optimizer) first",
                )
        return


def _always_on(file: PythonFile, scaler: ast.expr) -> bool:
    made = [origin.node for origin in origins(file, scaler)]
    return bool(made) and all(is_always_on(file, node) for node in made)
