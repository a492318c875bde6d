from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import optimizer_type, stage
from dsgen.lint.mark import Mark, error, insert, replace
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS511",
    kinds=("deepspeed",),
    about=("optimizer",),
    since="0.17.6",
    source="deepspeed/runtime/zero/stage3.py: Muon and reduce scatter cannot be used together",
)
def muon_at_stage_3(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Muon at ZeRO stage 3 without what it needs there: the engine raises.

    Muon orthogonalises whole matrices, so their gradients may not be scattered: stage 3 wants reduce_scatter false
    (it is true by default) and no quantized gradients, and does not have Muon at all before DeepSpeed 0.18.9.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}},
     "zero_optimization": {"stage": 3}}
    ```

    ```json fixed
    {"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}},
     "zero_optimization": {"stage": 3, "reduce_scatter": false}}
    ```

    ```json bad --deepspeed 0.18.2
    {"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}},
     "zero_optimization": {"stage": 3, "reduce_scatter": false}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}},
     "zero_optimization": {"stage": 2}}
    ```
    """
    if optimizer_type(file) != "muon" or stage(file, target) != 3:
        return
    path = ("zero_optimization", "reduce_scatter")
    if not target.since("0.18.9"):
        message = f"{target.library} has no Muon at stage 3: the engine asserts"
        yield error(("optimizer", "type"), message, help="use stage 1 or 2, or DeepSpeed 0.18.9 and newer")
    elif file.get(*path, default=True) in (True, "auto"):
        change = (replace if file.has(*path) else insert)("reduce whole gradients", path, False)
        yield error(
            path if file.has(*path) else ("optimizer", "type"),
            "Muon at stage 3 cannot have its gradients scattered (reduce_scatter, true by default): the engine raises",
            help='write "reduce_scatter": false in zero_optimization',
            fix=change,
        )
    elif file.get("zero_optimization", "zero_quantized_gradients") is True:
        where = ("zero_optimization", "zero_quantized_gradients")
        yield error(where, "Muon with quantized gradients at stage 3: the engine raises", help="remove it")
