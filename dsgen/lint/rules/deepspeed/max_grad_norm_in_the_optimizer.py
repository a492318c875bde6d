from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Change, Mark, Step, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS501",
    kinds=("deepspeed",),
    about=("max_grad_norm",),
    source="deepspeed/runtime/engine.py:_configure_basic_optimizer (ValueError)",
)
def max_grad_norm_in_the_optimizer(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """max_grad_norm among the optimizer's parameters: the engine raises.

    Clipping is gradient_clipping at the top level. Left out, it is 1.0 from DeepSpeed 0.19.3 on and off before, so
    it is worth writing down.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.1, "max_grad_norm": 0.3}}}
    ```

    ```json fixed
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, "gradient_clipping": 0.3}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, "gradient_clipping": 0.3}
    ```
    """
    path = ("optimizer", "params", "max_grad_norm")
    if not file.has(*path) or not file.has("optimizer", "type"):
        return
    norm, clipping = file.get(*path), file.get("gradient_clipping")
    default = "clips at 1.0" if target.since("0.19.3") else "does not clip"
    steps = [Step("remove", path)]
    if clipping is None:
        steps.append(Step("insert", ("gradient_clipping",), norm))
    yield error(
        path,
        "max_grad_norm is no parameter of DeepSpeed's optimizers: the engine raises",
        help=f'write "gradient_clipping": {norm} at the top level; without it {target.library} {default}',
        on="key",
        fix=Change("clip by gradient_clipping", tuple(steps)) if clipping in (None, norm) else None,
    )
