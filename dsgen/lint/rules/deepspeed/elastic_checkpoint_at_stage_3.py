from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, error, remove
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS315",
    kinds=("deepspeed",),
    about=("elastic_checkpoint",),
    source="deepspeed/runtime/zero/stage3.py:state_dict, load_state_dict (elastic_checkpoint)",
)
def elastic_checkpoint_at_stage_3(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """elastic_checkpoint at stage 3: saving a checkpoint raises NotImplementedError.

    It lets stages 1 and 2 load a checkpoint on another number of ranks. Stage 3 takes the key and fails when the
    first checkpoint is saved.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "elastic_checkpoint": true}}
    ```

    ```json fixed
    {"train_batch_size": 8, "zero_optimization": {"stage": 3}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "elastic_checkpoint": true}}
    ```
    """
    if stage(file, target) == 3 and file.get("zero_optimization", "elastic_checkpoint") is True:
        yield error(
            ("zero_optimization", "elastic_checkpoint"),
            "elastic_checkpoint at stage 3: the first save_checkpoint raises NotImplementedError",
            help="remove it; ds_to_universal.py converts checkpoints for other numbers of ranks",
            on="key",
            fix=remove("remove elastic_checkpoint", ("zero_optimization", "elastic_checkpoint")),
        )
