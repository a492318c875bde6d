from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import UNKNOWN, engine_config, look
from dsgen.lint.python.models import wraps_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.windows import is_one, show, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC218", kinds=("python",), source="deepspeed/runtime/engine.py: step() counts micro-batches itself")
def engine_step_gated_by_hand(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``engine.step()`` only every k passes, where DeepSpeed counts micro-batches itself: it accumulates k times more.

    ``engine.step()`` belongs after every ``engine.backward()``: it updates when ``gradient_accumulation_steps`` are
    full.

    ```python bad
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for i, batch in enumerate(loader):
        engine.backward(engine(batch))
        if (i + 1) % 4 == 0:
            engine.step()
    ```

    ```python good
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```
    """
    if "set_gradient_accumulation_boundary" in file.tree.words:
        return
    seen = set()
    for window in windows(file):
        update = window.update
        if window.gate is None or update.what != "deepspeed" or update.call in seen or is_one(file, window.size):
            continue
        for wrap in wraps_of(file, update.target):
            steps = look(engine_config(file, wrap), "gradient_accumulation_steps", default=1)
            if steps is not UNKNOWN and isinstance(steps, int) and steps > 1:
                seen.add(update.call)
                yield error(
                    update.call,
                    f"DeepSpeed counts {steps} micro-batches by its own calls of step(); called only every "
                    f"{show(window.size)} passes, it updates {steps} times too seldom",
                    help="call engine.step() after every engine.backward()",
                    related=((window.gate.test, "the gate"),),
                )
