from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS115",
    kinds=("deepspeed",),
    about=("key-of-a-later-version",),
    source="first release whose config class has the field",
)
def key_of_a_later_version(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key that came with a later DeepSpeed than the stated one, which refuses or ignores it.

    ```json bad --deepspeed 0.17.0
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
     "zenflow": {"topk_ratio": 0.1}}}
    ```

    ```json good --deepspeed 0.17.5
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
     "zenflow": {"topk_ratio": 0.1}}}
    ```
    """
    yield from slips(file, target, "key-of-a-later-version")
