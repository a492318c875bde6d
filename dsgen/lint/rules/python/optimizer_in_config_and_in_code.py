from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.config_places import related
from dsgen.lint.python.configs import UNKNOWN, engine_config, look
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Section of the config -> argument of initialize() with its position.
_PAIRS = {"optimizer": ("optimizer", 2), "scheduler": ("lr_scheduler", 6)}


@rule(
    "XF501",
    kinds=("python",),
    source="deepspeed/runtime/engine.py:_configure_optimizer, _configure_lr_scheduler (the client's come first)",
)
def optimizer_in_config_and_in_code(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """An optimizer, or a schedule, stands in the config and is handed to ``deepspeed.initialize`` as well.

    The one from code is used, and the config's is passed over without a word: its learning rate and its decay are not
    those of the training.

    ```python bad
    import deepspeed
    import torch
    config = {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    ```

    ```python good
    import deepspeed
    config = {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```
    """
    for wrap in wraps_by(file, "deepspeed"):
        config = engine_config(file, wrap)
        for section, (name, place) in _PAIRS.items():
            given = argument(wrap.call, name, place)
            named = look(config, section, "type")
            if given is None or not isinstance(named, str) or named is UNKNOWN:
                continue
            if _is_none(given):
                continue
            what = "an optimizer" if section == "optimizer" else "a schedule"
            yield warning(
                given,
                f"the config names {what}, {named}, too: this one is used, and the config's is passed over",
                help="keep one of the two",
                related=related(file, argument(wrap.call, "config", 10), "deepspeed", (section, "type"), "passed over"),
            )


def _is_none(given: object) -> bool:
    return getattr(given, "value", given) is None
