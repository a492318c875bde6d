from collections.abc import Iterator

from dsgen.lint.accelerate_file import REFUSED, AccelerateFile
from dsgen.lint.accelerate_section import SECTION
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "AC301",
    kinds=("accelerate",),
    source="accelerate/utils/dataclasses.py:DeepSpeedPlugin._deepspeed_config_checks, commands/launch.py",
)
def keys_beside_a_config_file(file: AccelerateFile, target: LintTarget) -> Iterator[Mark]:
    """Accelerate's own DeepSpeed keys beside deepspeed_config_file: Accelerate raises.

    With a config file, that file alone says stage, offload, accumulation, clipping and how weights are saved;
    mixed_precision has to stand there, too (fp16 and bf16). What may stay is zero3_init_flag and the launcher's keys.

    ```yaml bad
    distributed_type: DEEPSPEED
    deepspeed_config:
      deepspeed_config_file: ds_config.json
      zero_stage: 2
      gradient_accumulation_steps: 3
    ```

    ```yaml good
    distributed_type: DEEPSPEED
    deepspeed_config:
      deepspeed_config_file: ds_config.json
      zero3_init_flag: true
    ```

    ```yaml good
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 2
      gradient_accumulation_steps: 3
    ```
    """
    if file.named is None:
        return
    section = file.section(SECTION)
    given = [key for key in REFUSED if key in section]
    precise = file.get("mixed_precision") is not None
    if not given and not precise:
        return
    names = [*given, *(["mixed_precision"] if precise else [])]
    found = file.config(target)
    differing = list(_differing(file, given, target)) if found else []
    said = f"; they also disagree: {', '.join(differing)}" if differing else ""
    yield error(
        (SECTION, given[0]) if given else ("mixed_precision",),
        f"with deepspeed_config_file Accelerate raises at {', '.join(names)}: {file.named} alone is to say that{said}",
        help=f"remove {', '.join(names)} here, and write what you mean in {file.named}",
        on="key",
        related=tuple(((SECTION, key), "this as well") for key in given[1:]),
    )


def _differing(file: AccelerateFile, given: list[str], target: LintTarget) -> Iterator[str]:
    found = file.config(target)
    if found is None:
        return
    for key in given:
        mine, theirs = file.get(SECTION, key), found[1].get(*REFUSED[key])
        if theirs not in (None, "auto", mine):
            yield f"{key} {mine} here, {'.'.join(REFUSED[key])} {theirs} there"
