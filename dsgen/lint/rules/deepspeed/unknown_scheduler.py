from collections.abc import Iterator

from dsgen.lint.class_names import check_name
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS503",
    kinds=("deepspeed",),
    about=("scheduler",),
    source="deepspeed/runtime/engine.py:_scheduler_from_config (lr_schedules, else torch.optim.lr_scheduler)",
)
def unknown_scheduler(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A learning rate schedule that this DeepSpeed does not have, or no type at all (the section is then ignored).

    Names are read in their exact spelling.

    ```json bad
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLr", "params": {"warmup_num_steps": 100}}}
    ```

    ```json fixed
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}
    ```

    ```json good
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}
    ```
    """
    section = file.section("scheduler")
    if section and "type" not in section and not is_misspelt(file, target, "scheduler", "type"):
        yield warning(
            ("scheduler",), "scheduler has no type: DeepSpeed ignores the section", help='write "type"', on="key"
        )
        return
    yield from check_name(file, "scheduler", target)
