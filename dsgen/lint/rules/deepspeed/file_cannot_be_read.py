from collections.abc import Iterator

from dsgen.documents.document import DocumentError
from dsgen.documents.hjson_text import read_hjson
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS101",
    kinds=("deepspeed",),
    about=("cannot-be-read",),
    source=(
        "hjson 3.1 (deepspeed/runtime/config.py:DeepSpeedConfig.__init__); json of Python for transformers "
        "and accelerate"
    ),
    unread=True,
)
def file_cannot_be_read(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A file that whoever loads it cannot read.

    DeepSpeed reads HJSON: comments, trailing commas and text without quotes are fine there. transformers and
    accelerate read the same file as plain JSON and refuse them.

    ```json bad
    {"train_batch_size": 8
    ```

    ```json bad --loaded-by transformers
    {"train_batch_size": 8, // eight
    }
    ```

    ```json bad
    [8]
    ```

    ```json good --loaded-by deepspeed
    {"train_batch_size": 8, // eight
    }
    ```
    """
    problem = file.document.problem
    if problem is None:
        # YAML that holds no config is somebody else's file.
        if not isinstance(file.value, dict) and file.dialect == "json":
            message = "the config is no object: DeepSpeed wants keys and values in braces"
            yield error((), message, help='write {"train_batch_size": ...}')
        return
    help = problem.help
    by_json = file.dialect == "json" and target.loaded_by in ("transformers", "accelerate")
    if by_json and _is_hjson(file.document.text):
        help = f"DeepSpeed itself reads this (HJSON), but {target.loaded_by} loads the file as plain JSON"
    yield error((), problem.message, help=help)


def _is_hjson(text: str) -> bool:
    try:
        read_hjson(text)
    except DocumentError:
        return False
    return bool(text.strip())
