from collections.abc import Iterator

from dsgen.lint.accelerate_file import AccelerateFile
from dsgen.lint.accelerate_section import SECTION
from dsgen.lint.mark import Mark, replace, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "AC303",
    kinds=("accelerate",),
    source="accelerate/commands/launch.py:_validate_launch_command (use_deepspeed where distributed_type is DEEPSPEED)",
)
def deepspeed_section_that_is_not_used(file: AccelerateFile, _target: LintTarget) -> Iterator[Mark]:
    """A deepspeed_config in a file whose distributed_type is another: Accelerate passes it over.

    Training is then plain data parallel (or FSDP), whatever the section says.

    ```yaml bad
    distributed_type: MULTI_GPU
    deepspeed_config:
      zero_stage: 3
    ```

    ```yaml fixed
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 3
    ```

    ```yaml good
    distributed_type: MULTI_GPU
    deepspeed_config: {}
    ```
    """
    kind = file.get("distributed_type")
    if not isinstance(kind, str) or kind.upper() == "DEEPSPEED" or not file.section(SECTION):
        return
    path = ("distributed_type",)
    yield warning(
        path,
        f"distributed_type is {kind}, so Accelerate passes deepspeed_config over: there is no ZeRO",
        help="write DEEPSPEED, or remove deepspeed_config",
        related=(((SECTION,), "passed over"),),
        fix=replace("use DeepSpeed", path, "DEEPSPEED", safe=False),
    )
