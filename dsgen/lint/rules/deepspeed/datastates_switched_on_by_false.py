from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, remove, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS807",
    kinds=("deepspeed",),
    about=("datastates_ckpt",),
    since="0.18.1",
    source="deepspeed/datastates/config.py:DeepSpeedDataStatesConfig",
)
def datastates_switched_on_by_false(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """datastates_ckpt with enabled false: DeepSpeed takes any value but the bare word false for on.

    {"enabled": false} is such a value. Remove the section, or write "datastates_ckpt": false.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "datastates_ckpt": {"enabled": false}, "gradient_clipping": 1.0}
    ```

    ```json fixed
    {"train_batch_size": 8, "gradient_clipping": 1.0}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "datastates_ckpt": false}
    ```
    """
    if file.get("datastates_ckpt", "enabled") is False:
        yield warning(
            ("datastates_ckpt", "enabled"),
            f"{target.library} takes this section for on, whatever enabled says",
            help='remove it, or write "datastates_ckpt": false',
            fix=remove("remove datastates_ckpt", ("datastates_ckpt",), safe=False),
        )
