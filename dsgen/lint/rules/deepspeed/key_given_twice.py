from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS117",
    kinds=("deepspeed",),
    about=("key-given-twice",),
    source="pydantic aliases (populate_by_name) and deepspeed/runtime/config_utils.py:_process_deprecated_field",
)
def key_given_twice(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Two spellings of one key at once, which DeepSpeed refuses.

    ```json bad
    {"train_batch_size": 8,
     "zero_optimization": {"stage": 3, "max_reuse_distance": 1, "stage3_max_reuse_distance": 2}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 2}}
    ```
    """
    yield from slips(file, target, "key-given-twice")
