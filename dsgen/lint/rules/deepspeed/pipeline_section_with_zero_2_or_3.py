from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS317",
    kinds=("deepspeed",),
    about=("pipeline",),
    source="deepspeed/runtime/pipe/engine.py:PipelineEngine.__init__",
)
def pipeline_section_with_zero_2_or_3(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A pipeline section beside ZeRO stage 2 or 3, which the pipeline engine refuses.

    The section acts only where the code trains a PipelineModule, and there "ZeRO-2 and ZeRO-3 are incompatible with
    pipeline parallelism": stages 0 and 1 work. At stage 1 overlap_comm is switched off.

    ```json bad
    {"train_batch_size": 8, "pipeline": {"activation_checkpoint_interval": 1}, "zero_optimization": {"stage": 2}}
    ```

    ```json good
    {"train_batch_size": 8, "pipeline": {"activation_checkpoint_interval": 1}, "zero_optimization": {"stage": 1}}
    ```
    """
    level = stage(file, target)
    if not file.has("pipeline") or level is None:
        return
    if level >= 2:
        message = f"the pipeline section acts with a PipelineModule only, which asserts at ZeRO stage {level}"
        yield warning(("pipeline",), message, help="use stage 0 or 1, or remove the section", on="key")
    elif level == 1 and file.get("zero_optimization", "overlap_comm") is True:
        path = ("zero_optimization", "overlap_comm")
        yield warning(path, "overlap_comm is switched off by the pipeline engine", help="write false, or remove it")
