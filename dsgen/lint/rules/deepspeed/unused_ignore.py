from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.ignores import unused
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("DS109", kinds=("deepspeed",), about=("ignore",), source="dsgen/lint/ignores.py", unread=True, last=True)
def unused_ignore(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """A ``dsgen: ignore[CODE]`` that hides nothing.

    It stands at the end of the line that it is for, or alone above it. Such a comment outlives its reason: the config
    was mended, or another DeepSpeed is meant. What it would hide next is something that nobody has looked at.

    ```json bad
    {
      "train_batch_size": 8, // dsgen: ignore[DS110]
    }
    ```

    ```json fixed
    {
      "train_batch_size": 8,
    }
    ```

    ```json bad
    {
      "train_batch_size": 8, // dsgen: ignore
    }
    ```

    ```json good
    {
      // our own script reads it, dsgen: ignore[DS110]
      "our_own_key": 1,
      "train_batch_size": 8,
      "zero_optimization": {"stage": 9}, # dsgen: ignore[DS112]
    }
    ```
    """
    yield from unused(file.ignores)
