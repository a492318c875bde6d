from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.config_places import related
from dsgen.lint.python.configs import UNKNOWN, engine_config, look, stage_of
from dsgen.lint.python.models import receiver, wrapper_of, wraps_by
from dsgen.lint.python.names import argument, is_open
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "XF502",
    kinds=("python",),
    source="deepspeed/runtime/engine.py:_configure_zero_optimizer (zero stage N requires an optimizer), backward",
)
def engine_without_an_optimizer(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The code trains an engine that has no optimizer: neither the config nor ``deepspeed.initialize`` gives one.

    At stages 1 and 2 ``initialize`` asserts; at stage 3 and without ZeRO the first ``engine.backward`` fails: such an
    engine is for inference. A scheduler section is then ignored.

    ```python bad
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 2}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```

    ```python good
    import deepspeed
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 3}}
    engine, *_ = deepspeed.initialize(model=model, config=config)
    engine.eval()
    ```

    ```python good
    import deepspeed
    config = {
        "train_batch_size": 8,
        "zero_optimization": {"stage": 2},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```
    """
    engines = wraps_by(file, "deepspeed")
    if len(engines) != 1 or not _trains(file):
        return
    (wrap,) = engines
    config, given = engine_config(file, wrap), argument(wrap.call, "config", 10)
    named = look(config, "optimizer", "type")
    if config is None or is_open(wrap.call) or argument(wrap.call, "optimizer", 2) is not None:
        return
    stage = stage_of(config)
    if named is UNKNOWN or named is not None or stage is None:
        return
    fails = "deepspeed.initialize asserts" if stage in (1, 2) else "the first engine.backward fails"
    yield error(
        wrap.call,
        f"neither the config nor this call gives an optimizer: at ZeRO stage {stage} {fails}",
        help='write "optimizer": {"type": "AdamW", "params": {"lr": ...}} in the config, or pass optimizer=',
        related=related(file, given, "deepspeed", ("zero_optimization", "stage"), f"stage {stage}")
        or related(file, given, "deepspeed", (), "no optimizer here"),
    )


def _trains(file: PythonFile) -> bool:
    """Whether ``backward`` is called on the engine."""
    calls = file.tree.methods_called("backward")
    return any(wrapper_of(file, owner) == "deepspeed" for call in calls if (owner := receiver(call)) is not None)
