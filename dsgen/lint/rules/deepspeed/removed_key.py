from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS113",
    kinds=("deepspeed",),
    about=("removed-key", "key-removed-later"),
    source="deepspeed/runtime/config.py:_reject_removed_config_keys",
)
def removed_key(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key of a feature that DeepSpeed has removed.

    From 0.19.7 on DeepSpeed refuses such keys even where the feature is switched off. With a stated version that
    refuses the key this is an error; before that, and where no version is stated, a warning.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "amp": {"enabled": false}}
    ```

    ```json bad --deepspeed 0.16.4
    {"train_batch_size": 8, "elasticity": {"enabled": false}}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}}
    ```
    """
    yield from slips(file, target, "removed-key", "key-removed-later")
