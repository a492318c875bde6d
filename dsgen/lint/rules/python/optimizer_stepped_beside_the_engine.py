from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument
from dsgen.lint.python.origins import Origin, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import backwards, updates
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC307", kinds=("python",), source="deepspeed/runtime/engine.py:step, _take_model_step")
def optimizer_stepped_beside_the_engine(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``optimizer.step()`` where a DeepSpeed engine owns the model: its own ``step()`` reduces and clips.

    ```python bad
    import deepspeed
    engine, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=base, config="ds_config.json")
    for batch in loader:
        engine.backward(engine(batch))
        optimizer.step()
        optimizer.zero_grad()
    ```

    ```python good
    import deepspeed
    engine, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=base, config="ds_config.json")
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```
    """
    engines = wraps_by(file, "deepspeed")
    driven = any(backward.driver == "deepspeed" for backward in backwards(file))
    if not engines or not driven or any(update.what == "deepspeed" for update in updates(file)):
        return
    owned = {Origin(wrap.call, (1,)) for wrap in engines}
    for wrap in engines:
        given = argument(wrap.call, "optimizer", 2)
        owned |= origins(file, given) if given is not None else frozenset()
    for update in updates(file):
        if update.what == "optimizer" and origins(file, update.target) & owned:
            yield error(
                update.call,
                "the DeepSpeed engine owns this optimizer: stepping it goes past reduction, clipping and accumulation",
                help="call engine.step() after every engine.backward()",
            )
