from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, insert, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS415",
    kinds=("deepspeed",),
    about=("fp16", "bf16"),
    source="deepspeed/runtime/precision_config.py (enabled defaults to false)",
)
def precision_section_without_enabled(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An fp16 or bf16 section that does not say enabled: it is then off, and its other keys do nothing.

    No loader adds the key; transformers and accelerate only replace an "auto" that stands there.

    ```json bad
    {"train_batch_size": 8, "fp16": {"loss_scale": 0, "initial_scale_power": 16}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}}
    ```

    ```json good
    {"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 0}, "bf16": {"enabled": true}}
    ```
    """
    for name in ("fp16", "bf16"):
        section = file.section(name)
        if section and "enabled" not in section and not is_misspelt(file, target, name, "enabled"):
            named = ", ".join(list(section)[:3]) + (", ..." if len(section) > 3 else "")
            do = "does" if len(section) == 1 else "do"
            yield warning(
                (name,),
                f"{name} has no enabled: the default is false, so {name} is off and {named} {do} nothing",
                help='write "enabled": true',
                on="key",
                fix=insert('write "enabled": true', (name, "enabled"), True, safe=False),
            )
