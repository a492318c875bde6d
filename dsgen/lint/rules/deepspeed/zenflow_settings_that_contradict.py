from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, stage, whole
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS314",
    kinds=("deepspeed",),
    about=("zenflow",),
    since="0.17.5",
    source="deepspeed/runtime/zenflow/engine.py:configure_zenflow, zenflow_stage_1_and_2.py",
)
def zenflow_settings_that_contradict(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """ZenFlow without CPU offload, at stage 0, or with intervals that do not fit: the engine raises.

    ZenFlow steps the less important gradients on the CPU, so it needs offload_optimizer with device cpu. With
    select_strategy auto the select_interval is chosen, too; with step or epoch it must be a number, and not less
    than update_interval. zenflow.offload needs overlap_comm. An update_interval replaces
    gradient_accumulation_steps.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 0.1}}}
    ```

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
     "zenflow": {"select_strategy": "step", "select_interval": 2, "update_interval": 4}}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
     "zenflow": {"select_strategy": "step", "select_interval": 8, "update_interval": 4}}}
    ```
    """
    zenflow = file.section("zero_optimization", "zenflow")
    level = stage(file, target)
    if not zenflow or level is None:
        return
    path = ("zero_optimization", "zenflow")
    device = offload_device(file, "offload_optimizer")
    if level == 0:
        yield error(path, "ZenFlow at stage 0: the first step fails", help="use stage 1, 2 or 3", on="key")
    elif device != "cpu":
        message = f"ZenFlow needs the optimizer on the CPU; offload_optimizer.device is {device}: the engine raises"
        yield error(path, message, help='write "offload_optimizer": {"device": "cpu"}', on="key")
    else:
        yield from _intervals(zenflow, path)
        if (
            zenflow.get("offload") is True
            and file.get("zero_optimization", "overlap_comm", default=level == 3) is False
        ):
            yield error(
                (*path, "offload"), "zenflow.offload needs overlap_comm: the engine asserts", help="switch it on"
            )
        count, accumulation = zenflow.get("update_interval"), file.get("gradient_accumulation_steps")
        if isinstance(count, int) and whole(accumulation) is not None and accumulation != count:
            yield warning(
                ("gradient_accumulation_steps",),
                f"gradient_accumulation_steps {accumulation} is replaced by zenflow.update_interval {count}",
                help=f"write {count}, or leave update_interval out",
                related=(((*path, "update_interval"), "it replaces the accumulation"),),
            )


def _intervals(zenflow: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Mark]:
    auto = zenflow.get("select_strategy", "auto") == "auto"
    select, update = zenflow.get("select_interval", "auto"), zenflow.get("update_interval", "auto")
    if auto and isinstance(select, int):
        message = f"select_interval {select} with select_strategy auto, which chooses it: the engine raises"
        yield error((*path, "select_interval"), message, help='write "select_strategy": "step", or leave it out')
    elif not auto and not isinstance(select, int):
        where = (*path, "select_strategy")
        message = f"select_strategy {zenflow['select_strategy']!r} needs a number as select_interval"
        yield error(where, message, help='write "select_interval": a number, or "select_strategy": "auto"')
    elif (
        isinstance(select, int) and isinstance(update, int) and select < update and zenflow["select_strategy"] == "step"
    ):
        message = f"select_interval {select} is less than update_interval {update}: the engine raises"
        yield error((*path, "select_interval"), message, help=f"write {update} or more")
