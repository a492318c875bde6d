from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import whole
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule("DS202", kinds=("deepspeed",), source="deepspeed/runtime/config.py:_set_batch_related_parameters")
def batch_size_missing(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """No batch size: DeepSpeed needs train_batch_size or train_micro_batch_size_per_gpu.

    gradient_accumulation_steps alone says neither. transformers and accelerate put the micro batch in themselves.

    ```json bad --loaded-by deepspeed
    {"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}
    ```

    ```json bad
    {"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}
    ```

    ```json good --loaded-by transformers
    {"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}
    ```
    """
    sizes = ("train_batch_size", "train_micro_batch_size_per_gpu")
    if any(file.get(key) is not None or is_misspelt(file, target, key) for key in sizes):
        return
    accumulation = whole(file.get("gradient_accumulation_steps"))
    help = 'write "train_micro_batch_size_per_gpu": the sequences per GPU and forward pass'
    if target.loaded_by == "deepspeed":
        yield error(
            (), "neither train_batch_size nor train_micro_batch_size_per_gpu is given: DeepSpeed raises", help=help
        )
    elif target.loaded_by is None and accumulation is not None and not file.holds_auto:
        message = "gradient_accumulation_steps stands without a batch size: DeepSpeed raises, unless a trainer adds it"
        yield warning(("gradient_accumulation_steps",), message, help=help, on="key")
