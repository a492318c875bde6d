from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS112",
    kinds=("deepspeed",),
    about=("value-not-allowed",),
    source="deepspeed/runtime/zero/config.py; offload_config.py; precision_config.py; config.py",
)
def value_not_allowed(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A value outside what the key allows: below its minimum, above its maximum, or none of its words.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 4}}
    ```

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "gpu"}}}
    ```

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 0}}
    ```

    ```json good --deepspeed 0.19.5
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 0}}
    ```
    """
    yield from slips(file, target, "value-not-allowed")
