from collections.abc import Iterator

from dsgen.documents.document import Span
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS102",
    kinds=("deepspeed",),
    about=("duplicate-key",),
    source="deepspeed/runtime/config_utils.py:dict_raise_error_on_duplicate_keys; json of Python keeps the last",
)
def duplicate_key(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key that stands twice in one object.

    DeepSpeed raises "Duplicate keys in DeepSpeed config"; transformers and accelerate keep the last one without a
    word.

    ```json bad
    {"train_batch_size": 8, "train_batch_size": 16}
    ```

    ```json bad --loaded-by transformers
    {"train_batch_size": 8, "train_batch_size": 16, "zero_optimization": {"stage": 0}}
    ```

    ```json good
    {"fp16": {"enabled": false}, "bf16": {"enabled": true}}
    ```
    """
    for duplicate in file.document.duplicates():
        again, first = duplicate.last, duplicate.first
        strict = target.loaded_by not in ("transformers", "accelerate") and file.dialect == "json"
        reader = {"yaml": "YAML", "python": "Python"}.get(file.dialect, target.loaded_by)
        lot = "DeepSpeed raises at it" if strict else f"{reader} takes the last one without a word"
        yield (error if strict else warning)(
            Span(again.key_start, again.key_end),
            f"{again.key!r} stands twice: {lot}",
            help="remove one of the two",
            related=((Span(first.key_start, first.key_end), "the first one"),),
        )
