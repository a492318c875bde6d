from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS114",
    kinds=("deepspeed",),
    about=("renamed-key", "old-key"),
    source="deepspeed/runtime/swap_tensor/aio_config.py; runtime/constants.py; zero/config.py (deprecated fields)",
)
def renamed_key(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key under a name that DeepSpeed has given up.

    Some old names are still read with a warning (then this is advice), others are ignored: ``aio.thread_count`` since
    0.16.4, ``seq_parallel_comm_data_type`` since 0.16.5.

    ```json bad --deepspeed 0.16.4
    {"train_batch_size": 8, "aio": {"thread_count": 4}}
    ```

    ```json fixed --deepspeed 0.16.4
    {"train_batch_size": 8, "aio": {"intra_op_parallelism": 4}}
    ```

    ```json good --deepspeed 0.16.3
    {"train_batch_size": 8, "aio": {"thread_count": 4}}
    ```
    """
    yield from slips(file, target, "renamed-key", "old-key")
