from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS306",
    kinds=("deepspeed",),
    about=("zero_optimization",),
    source=("deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig (stage defaults to 0)"),
)
def zero_options_without_a_stage(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A zero_optimization section without a stage.

    The stage is then 0, ZeRO is off, and every other key there does nothing.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"offload_optimizer": {"device": "cpu"}, "overlap_comm": true}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}
    ```
    """
    section = file.section("zero_optimization")
    if section and "stage" not in section and not is_misspelt(file, target, "zero_optimization", "stage"):
        named = ", ".join(list(section)[:3]) + (", ..." if len(section) > 3 else "")
        do = "does" if len(section) == 1 else "do"
        yield warning(
            ("zero_optimization",),
            f"zero_optimization has no stage: the default is 0, so ZeRO is off and {named} {do} nothing",
            help='write "stage": 1, 2 or 3',
            on="key",
        )
