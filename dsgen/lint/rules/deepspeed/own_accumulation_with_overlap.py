from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS316",
    kinds=("deepspeed",),
    about=("managed_gradient_accumulation",),
    since="0.19.4",
    source="deepspeed/runtime/engine.py:_do_sanity_check",
)
def own_accumulation_with_overlap(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """managed_gradient_accumulation false (your loop accumulates) where DeepSpeed cannot leave it to you.

    It goes with overlap_comm only from stage 2 on, and neither with pipelines nor with DeepCompile: the engine
    asserts.

    ```json bad
    {"train_batch_size": 8, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 1,
     "overlap_comm": true}}
    ```

    ```json good
    {"train_batch_size": 8, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 2,
     "overlap_comm": true}}
    ```
    """
    if file.get("managed_gradient_accumulation") is not False:
        return
    path, level = ("managed_gradient_accumulation",), stage(file, target)
    if level in (0, 1) and file.get("zero_optimization", "overlap_comm") is True:
        yield error(
            path,
            f"managed_gradient_accumulation false with overlap_comm at stage {level}: the engine asserts",
            help="switch overlap_comm off, or use stage 2",
            related=((("zero_optimization", "overlap_comm"), "overlap_comm is on"),),
        )
    elif file.get("compile", "deepcompile") is True:
        yield error(path, "managed_gradient_accumulation false with DeepCompile: the engine asserts", help="write true")
