from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS802",
    kinds=("deepspeed",),
    about=("quantize_training",),
    until="0.19.7",
    source="deepspeed/runtime/config.py: Eigenvalue based MoQ is temporarily disabled (0.19.6)",
)
def eigenvalues_that_are_disabled(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """quantize_training.eigenvalue switched on: DeepSpeed asserts that it is disabled.

    MoQ by eigenvalues has been switched off for long; the section was removed in 0.19.7.

    ```json bad also=DS113 --deepspeed 0.19.6
    {"train_batch_size": 8, "quantize_training": {"enabled": true, "eigenvalue": {"enabled": true}}}
    ```

    ```json good --deepspeed 0.19.6
    {"train_batch_size": 8, "gradient_clipping": 1.0}
    ```
    """
    if file.get("quantize_training", "eigenvalue", "enabled") is True:
        path = ("quantize_training", "eigenvalue", "enabled")
        yield error(
            path, f"{target.library} asserts: eigenvalues are disabled", help="write false, or remove the section"
        )
