from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.config_places import related
from dsgen.lint.python.configs import config_of, look
from dsgen.lint.python.models import is_accelerator, receiver
from dsgen.lint.python.names import argument, calls_of
from dsgen.lint.python.origins import constant
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "XF503",
    kinds=("python",),
    source="accelerate/accelerator.py:clip_grad_norm_ (DEEPSPEED: returns the engine's norm, clips nothing)",
)
def clipping_that_the_config_decides(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``accelerator.clip_grad_norm_`` with another bound than the DeepSpeed config's gradient_clipping.

    Under DeepSpeed, Accelerate clips nothing there: the engine does, in its step, by the config. The number in code is
    never used.

    ```python bad
    from accelerate import Accelerator, DeepSpeedPlugin
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}}
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=config))
    accelerator.clip_grad_norm_(model.parameters(), 0.3)
    ```

    ```python good
    from accelerate import Accelerator, DeepSpeedPlugin
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.3, "zero_optimization": {"stage": 2}}
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=config))
    accelerator.clip_grad_norm_(model.parameters(), 0.3)
    ```
    """
    plugins = calls_of(file, "accelerate.DeepSpeedPlugin", "accelerate.utils.DeepSpeedPlugin")
    given = argument(plugins[0], "hf_ds_config", 0) if len(plugins) == 1 else None
    theirs = look(config_of(file, given, "accelerate"), "gradient_clipping") if given is not None else None
    if isinstance(theirs, bool) or not isinstance(theirs, int | float):
        return
    for call in file.tree.methods_called("clip_grad_norm_"):
        owner, bound = receiver(call), argument(call, "max_norm", 1)
        if owner is None or bound is None or not is_accelerator(file, owner):
            continue
        mine = constant(file, bound)
        if mine is not None and mine != theirs:
            yield warning(
                bound,
                f"under DeepSpeed this clips nothing: the engine clips at the config's gradient_clipping {theirs:g}, "
                f"not at {mine:g}",
                help=f'write "gradient_clipping": {mine:g} in the config, or "auto"',
                related=related(file, given, "accelerate", ("gradient_clipping",), f"{theirs:g} here"),
            )
