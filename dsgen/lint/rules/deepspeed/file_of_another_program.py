from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.foreign import ForeignFile
from dsgen.lint.mark import Mark, info
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("DS103", kinds=("deepspeed",), about=("cannot-be-read",), source="dsgen/lint/foreign.py", unread=True)
def file_of_another_program(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """A file of GPT-NeoX, Accelerate or another program that has some of DeepSpeed's keys (advice, with ``--info``).

    Such a program makes DeepSpeed's config of its own keys, and means something else by some of them, so the rules for
    DeepSpeed configs do not look at it.

    ```json bad
    {"pipe_parallel_size": 1, "num_layers": 12, "train_micro_batch_size_per_gpu": 4, "fp16": {"fp16": true}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": 4, "fp16": {"enabled": true}}
    ```
    """
    if isinstance(file, ForeignFile):
        yield info((), f"this is a file of {file.program}: dsgen lint has no rules for what stands in it")
