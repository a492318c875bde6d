from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# More elements than any matrix in the blocks of a dense model in models.csv; and than those of 7B models (a test).
_EVERYTHING, _MUCH = 1e9, 1e8
_LIMIT = "stage3_model_persistence_threshold"


@rule(
    "DS323",
    kinds=("deepspeed",),
    about=("stage3_param_persistence_threshold", "param_persistence_threshold"),
    source="deepspeed/runtime/zero/parameter_offload.py:mark_persistent_parameters",
)
def parameters_that_are_never_sharded(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """stage3_param_persistence_threshold so high that stage 3 shards next to nothing.

    Parameters with fewer elements stay whole on every GPU. It is meant for norms and biases (1e5; transformers
    writes 10 x hidden_size). From 1e9 on the matrices of all dense models stay whole, from 1e8 on those of 7B models
    (advice, ``--info``). With ``--model`` the share is told.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 1e9}}
    ```

    ```json bad --model llama-2-7b
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 5e7}}
    ```

    ```json good --model llama-2-7b
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 1e6}}
    ```
    """
    if stage(file, target) != 3:
        return
    for key in ("stage3_param_persistence_threshold", "param_persistence_threshold"):
        value = file.get("zero_optimization", key)
        if isinstance(value, bool) or not isinstance(value, int | float) or file.has("zero_optimization", _LIMIT):
            continue
        shapes = target.model.shapes if target.model else None
        if shapes is not None:
            kept = sum(t.numel for b in shapes.blocks for t in b.tensors if t.numel < value)
            kept += sum(t.numel for t in shapes.outside if t.numel < value)
            if kept * 2 > shapes.parameters:
                yield warning(
                    ("zero_optimization", key),
                    f"{kept * 100 // shapes.parameters} % of {shapes.name} stay whole on every GPU: parameters below "
                    f"{min(value, 1e300):g} elements are not sharded",
                    help=f"write {10 * shapes.architecture.hidden} (10 x hidden_size), or leave it out",
                )
        elif value >= _MUCH:
            message = (
                f"{key} {min(value, 1e300):g}: parameters with fewer elements stay whole on every GPU, matrices too"
            )
            make = warning if value >= _EVERYTHING else info
            yield make(("zero_optimization", key), message, help="write 1e5, or leave it out")
