from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS110",
    kinds=("deepspeed",),
    about=("unknown-key",),
    source="deepspeed/runtime/config_utils.py:DeepSpeedConfigModel (extra=forbid); config.py:_initialize_params",
)
def unknown_key(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key that this version of DeepSpeed does not know.

    At the top level, and in sections that DeepSpeed reads key by key, an unknown key is dropped without a word: with
    ``zero_optimisation`` the run is plain data parallel. Sections read by pydantic (zero_optimization, and from
    0.17.1 fp16 and bf16) raise instead. Keys that start with ``_``, ``//``, ``#`` or ``$`` are taken for notes at the
    top level.

    ```json bad
    {"train_micro_batch_size_per_gpu": 2, "zero_optimisation": {"stage": 2}}
    ```

    ```json fixed
    {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}
    ```

    ```json bad
    {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3, "aio": {"queue_depth": 16}}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}, "aio": {"queue_depth": 16}, "_": "x"}
    ```
    """
    yield from slips(file, target, "unknown-key")
