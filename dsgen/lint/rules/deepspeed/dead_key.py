from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule("DS116", kinds=("deepspeed",), about=("dead-key",), source="no reader of the key in the DeepSpeed sources")
def dead_key(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key that DeepSpeed parses and nothing reads (advice, shown with ``--info``).

    ```json bad
    {"train_batch_size": 8, "disable_allgather": true}
    ```

    ```json good
    {"train_batch_size": 8}
    ```
    """
    yield from slips(file, target, "dead-key")
