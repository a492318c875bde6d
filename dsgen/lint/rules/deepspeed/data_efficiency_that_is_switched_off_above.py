from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_PARTS = {"data_sampling": ("curriculum_learning", "dynamic_batching"), "data_routing": ("random_ltd",)}


@rule(
    "DS801",
    kinds=("deepspeed",),
    about=("data_efficiency",),
    source="deepspeed/runtime/data_pipeline/config.py, runtime/engine.py:_configure_curriculum_scheduler",
)
def data_efficiency_that_is_switched_off_above(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """A part of data_efficiency is switched on, and a level above it is not: nothing of it acts.

    data_efficiency.enabled, data_sampling.enabled (or data_routing.enabled) and the part's own enabled must all be
    true; the upper ones are false by default. random_ltd must name as many layers (random_ltd_layer_id) as
    random_ltd_layer_num says.

    ```json bad
    {"train_batch_size": 8, "data_efficiency": {"data_sampling": {"enabled": true}}}
    ```

    ```json good
    {"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_sampling": {"enabled": true}}}
    ```
    """
    top = file.section("data_efficiency")
    for group, parts in _PARTS.items():
        section = file.section("data_efficiency", group)
        on = [part for part in parts if isinstance(section.get(part), dict) and section[part].get("enabled") is True]
        inner = ("data_efficiency", group, on[0], "enabled") if on else ("data_efficiency", group, "enabled")
        if not on and section.get("enabled") is not True:
            continue
        off = [] if top.get("enabled") is True else ["data_efficiency.enabled"]
        off += [] if section.get("enabled") is True else [f"data_efficiency.{group}.enabled"]
        if off and "auto" not in (top.get("enabled"), section.get("enabled")):
            above = f"{' and '.join(off)} {'is' if len(off) == 1 else 'are'} not"
            message = f"{'.'.join(inner[:-1])} is on, but {above}: it does nothing"
            yield warning(inner, message, help="switch all levels on, or this one off")
    ltd = file.section("data_efficiency", "data_routing", "random_ltd")
    layers, count = ltd.get("random_ltd_layer_id"), ltd.get("random_ltd_layer_num")
    if ltd.get("enabled") is True and isinstance(layers, list) and isinstance(count, int) and len(layers) != count:
        path = ("data_efficiency", "data_routing", "random_ltd", "random_ltd_layer_id")
        message = f"random_ltd_layer_id names {len(layers)} layers, random_ltd_layer_num says {count}: DeepSpeed raises"
        yield error(path, message, help=f'write "random_ltd_layer_num": {len(layers)}, or other layers')
