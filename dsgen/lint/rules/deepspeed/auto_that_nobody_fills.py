from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS405",
    kinds=("deepspeed",),
    about=("auto-that-nobody-fills",),
    source=(
        "deepspeed/runtime/config_utils.py (drops it); transformers/integrations/deepspeed.py; "
        "accelerate/utils/dataclasses.py"
    ),
)
def auto_that_nobody_fills(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """ "auto" where whoever loads the file does not replace it.

    Only transformers and accelerate know the word, and each only for certain keys. DeepSpeed itself drops it in the
    sections that pydantic reads (the default is used: ``"stage": "auto"`` is stage 0) and fails on it elsewhere. Who
    loads the file is stated with ``--loaded-by``; where it is not, only keys that no loader fills are mentioned.

    ```json bad --loaded-by deepspeed
    {"train_micro_batch_size_per_gpu": "auto"}
    ```

    ```json bad --loaded-by deepspeed
    {"train_batch_size": 8, "bf16": {"enabled": "auto"}}
    ```

    ```json bad --loaded-by transformers
    {"train_batch_size": "auto", "zero_optimization": {"stage": 3, "sub_group_size": "auto"}}
    ```

    ```json good --loaded-by transformers
    {"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 0}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": "auto"}
    ```
    """
    if file.dialect != "python":  # there TC306 says it, of configs in code and of files that code names alike
        yield from slips(file, target, "auto-that-nobody-fills")
