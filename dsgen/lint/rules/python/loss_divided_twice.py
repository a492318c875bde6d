import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import UNKNOWN, engine_config, look
from dsgen.lint.python.models import receiver, wraps_of
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import constant, origins, same
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import Backward, backwards
from dsgen.lint.python.scaling import scaling_of
from dsgen.lint.python.windows import show
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC203",
    kinds=("python",),
    source="deepspeed/runtime/engine.py:backward (scale_wrt_gas); accelerate/accelerator.py:backward",
)
def loss_divided_twice(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The loss is divided by the accumulation count, and then Accelerate or DeepSpeed divides it again.

    ``accelerator.backward`` and ``engine.backward`` divide by the number of accumulation steps themselves. Gradients
    come out k times too small, without a word.

    ```python bad
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss / 4
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python bad
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}
    engine, _, _, _ = deepspeed.initialize(model=model, config=config, optimizer=optimizer)
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss / engine.gradient_accumulation_steps())
        engine.step()
    ```

    ```python good
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}
    engine, _, _, _ = deepspeed.initialize(model=model, config=config, optimizer=optimizer)
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss / 8, scale_wrt_gas=False)
        engine.step()
    ```
    """
    for backward in backwards(file):
        divisor = None
        if backward.driver == "accelerate":
            divisor = _by_accelerate(file, backward)
        elif backward.driver == "deepspeed" and argument(backward.call, "scale_wrt_gas") is None:
            divisor = _by_deepspeed(file, backward)
        if divisor is not None:
            who = "Accelerate" if backward.driver == "accelerate" else "DeepSpeed"
            by = show(divisor)
            more = "" if who == "Accelerate" else ", or pass scale_wrt_gas=False"
            yield error(
                backward.call,
                f"the loss is divided twice: here by {by}, and by {who} in backward() by the same number",
                help=f"drop the division by {by}{more}",
                related=((divisor, "the division"),),
            )


def _by_accelerate(file: PythonFile, backward: Backward) -> ast.expr | None:
    owner = receiver(backward.call)
    made = [o.node for o in origins(file, owner)] if owner is not None else []
    for node in made:
        if isinstance(node, ast.Call) and called(file, node) == "accelerate.Accelerator":
            steps = argument(node, "gradient_accumulation_steps")
            if steps is not None and constant(file, steps) != 1:
                divisors = scaling_of(file, backward.loss).divisors
                for divisor in divisors:
                    if same(file, divisor, steps) or _asks(divisor, "gradient_accumulation_steps"):
                        return divisor
    return None


def _by_deepspeed(file: PythonFile, backward: Backward) -> ast.expr | None:
    owner = receiver(backward.call)
    divisors = scaling_of(file, backward.loss).divisors
    for divisor in divisors:
        if _asks(divisor, "gradient_accumulation_steps") and isinstance(divisor, ast.Call):
            return divisor
    for wrap in wraps_of(file, owner) if owner is not None else []:
        steps = look(engine_config(file, wrap), "gradient_accumulation_steps", default=1)
        if steps is not UNKNOWN and isinstance(steps, int) and steps > 1:
            for divisor in divisors:
                if constant(file, divisor) == steps:
                    return divisor
        for divisor in divisors:
            if _written(file, wrap.call, divisor):
                return divisor
    return None


def _asks(divisor: ast.expr, name: str) -> bool:
    """``engine.gradient_accumulation_steps()``, ``accelerator.gradient_accumulation_steps``."""
    inner = divisor.func if isinstance(divisor, ast.Call) else divisor
    if not isinstance(inner, ast.Attribute) or inner.attr != name:
        return False
    owner = getattr(inner.value, "attr", None) or getattr(inner.value, "id", "")
    return isinstance(divisor, ast.Call) or owner == "accelerator"


def _written(file: PythonFile, call: ast.Call, divisor: ast.expr) -> bool:
    """Whether the config that is written out holds the very same expression as its accumulation count."""
    given = argument(call, "config", 10) or argument(call, "config_params")
    for origin in origins(file, given) if given is not None else ():
        if isinstance(origin.node, ast.Dict):
            for key, value in zip(origin.node.keys, origin.node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "gradient_accumulation_steps":
                    return constant(file, value) is None and same(file, value, divisor)
    return False
