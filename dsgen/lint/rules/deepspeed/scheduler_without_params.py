from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, insert
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS508",
    kinds=("deepspeed",),
    about=("scheduler",),
    source="deepspeed/runtime/engine.py:_scheduler_from_config (scheduler(optimizer, **None))",
)
def scheduler_without_params(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A scheduler without params: DeepSpeed passes ``**None`` and raises a TypeError.

    ```json bad
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR"}}
    ```

    ```json fixed
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}
    ```

    ```json good
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}
    ```
    """
    if is_misspelt(file, target, "scheduler", "params"):
        return
    if isinstance(file.get("scheduler", "type"), str) and file.get("scheduler", "params") is None:
        fix = None if file.has("scheduler", "params") else insert("add them", ("scheduler", "params"), {})
        message = "scheduler has no params: DeepSpeed raises a TypeError"
        yield error(("scheduler",), message, help='write "params": {...}', on="key", fix=fix)
