from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.gradients import torch_clips
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import position
from dsgen.lint.python.windows import is_one, show, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC215", kinds=("python",), source="arithmetic; tests/conformance/test_training_claims.py")
def clip_with_every_micro_batch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Gradients are clipped with every micro-batch, though the update comes only every k: the sum points elsewhere.

    What was added up so far is shrunk again and again, so early micro-batches count less. Clip once, before the step.

    ```python bad
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(loader):
        (model(batch).mean() / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    ```
    """
    seen = set()
    for window in windows(file):
        if window.gate is None or window.backward.driver not in ("plain", "scaler") or is_one(file, window.size):
            continue
        for clip in torch_clips(file):
            here = file.tree.loops(clip)[:1] == [window.loop] and not file.tree.guards(clip, window.loop)
            if here and clip not in seen and position(clip) > position(window.anchors(file)[0]):
                seen.add(clip)
                yield error(
                    clip,
                    f"gradients are clipped with every micro-batch, but used only every {show(window.size)}: the sum "
                    f"so far "
                    "is shrunk again and again",
                    help="clip once, right before the step, under the same condition",
                    related=((window.gate.test, "the update"),),
                )
