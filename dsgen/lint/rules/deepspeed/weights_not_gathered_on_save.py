from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, info, insert, replace
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget

KEY = "stage3_gather_16bit_weights_on_model_save"


@rule(
    "DS325",
    kinds=("deepspeed",),
    source="deepspeed/runtime/engine.py:save_16bit_model, transformers/trainer.py:save_model",
)
def weights_not_gathered_on_save(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Stage 3 under a trainer without stage3_gather_16bit_weights_on_model_save: what is saved are shards.

    save_model then finds no whole weights and saves ZeRO's own files, from which zero_to_fp32.py has to make a
    model. With true, rank 0 gathers the 16-bit weights (it takes host memory for the whole model). Advice
    (``--info``); where code is seen to save the model, XF303 warns.

    ```json bad --loaded-by transformers
    {"train_batch_size": "auto", "zero_optimization": {"stage": 3}}
    ```

    ```json fixed
    {"train_batch_size": "auto", "zero_optimization": {"stage": 3,
     "stage3_gather_16bit_weights_on_model_save": true}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3}}
    ```

    ```json good --loaded-by transformers
    {"train_batch_size": "auto", "zero_optimization": {"stage": 2}}
    ```
    """
    if file.dialect == "python" or target.loaded_by not in ("transformers", "accelerate") or stage(file, target) != 3:
        return
    names = (KEY, "stage3_gather_fp16_weights_on_model_save", "gather_16bit_weights_on_model_save")
    if any(is_misspelt(file, target, "zero_optimization", name) for name in names):
        return
    given = [name for name in names if file.has("zero_optimization", name)]
    if any(file.get("zero_optimization", name) is not False for name in given):
        return
    path = ("zero_optimization", *given[:1]) if given else ("zero_optimization", KEY)
    change = replace if given else insert
    yield info(
        path if given else ("zero_optimization", "stage"),
        f"{KEY} is {'false' if given else 'not written (false)'}: saving the model writes ZeRO's shards",
        help="write true, or run zero_to_fp32.py on the checkpoint",
        fix=change("gather the weights when they are saved", path, True, safe=False),
    )
