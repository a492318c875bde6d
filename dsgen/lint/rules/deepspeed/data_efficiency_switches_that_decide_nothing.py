from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_PARTS = {"data_sampling": ("curriculum_learning", "dynamic_batching"), "data_routing": ("random_ltd",)}


@rule(
    "DS801",
    kinds=("deepspeed",),
    about=("data_efficiency",),
    source=(
        "deepspeed/runtime/engine.py:curriculum_learning_enabled, random_ltd_enabled (the parts' own switches; "
        "data_efficiency_enabled has no caller); runtime/data_pipeline/config.py"
    ),
)
def data_efficiency_switches_that_decide_nothing(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """data_efficiency, data_sampling or data_routing switched on or off, which decides nothing: each part has its own.

    DeepSpeed reads the switches of curriculum_learning, dynamic_batching and random_ltd and no others. A part that is
    on acts although a level above is off; a level that is on does nothing as long as no part of it is. random_ltd must
    name as many layers (random_ltd_layer_id) as random_ltd_layer_num says.

    ```json bad
    {"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_sampling": {"enabled": true}}}
    ```

    ```json bad
    {"train_batch_size": 8, "data_efficiency": {"enabled": false, "data_sampling": {"enabled": true,
     "dynamic_batching": {"enabled": true, "max_tokens": 4096}}}}
    ```

    ```json good
    {"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_sampling": {"enabled": true,
     "dynamic_batching": {"enabled": true, "max_tokens": 4096}}}}
    ```
    """
    top = file.section("data_efficiency")
    for group, parts in _PARTS.items():
        section = file.section("data_efficiency", group)
        on = [part for part in parts if isinstance(section.get(part), dict) and section[part].get("enabled") is True]
        if on:
            yield from _overruled(on[0], group, section, top)
        elif section.get("enabled") is True:
            message = f"{group} is on, but no part of it ({', '.join(parts)}) is: nothing acts"
            path = ("data_efficiency", group, "enabled")
            yield warning(path, message, help="switch a part of it on, or write false")
    ltd = file.section("data_efficiency", "data_routing", "random_ltd")
    layers, count = ltd.get("random_ltd_layer_id"), ltd.get("random_ltd_layer_num")
    if ltd.get("enabled") is True and isinstance(layers, list) and isinstance(count, int) and len(layers) != count:
        named = ("data_efficiency", "data_routing", "random_ltd", "random_ltd_layer_id")
        message = f"random_ltd_layer_id names {len(layers)} layers, random_ltd_layer_num says {count}: DeepSpeed raises"
        yield error(named, message, help=f'write "random_ltd_layer_num": {len(layers)}, or other layers')


def _overruled(part: str, group: str, section: dict[str, object], top: dict[str, object]) -> Iterator[Mark]:
    """A part that is on below a level that is off, as written (a warning) or by its default (advice)."""
    above = {"data_efficiency": top.get("enabled"), f"data_efficiency.{group}": section.get("enabled")}
    off = [name for name, enabled in above.items() if enabled is not True and enabled != "auto"]
    if off:
        make = warning if False in above.values() else info
        message = (
            f"{part} is on and acts, although {' and '.join(off)} {'is' if len(off) == 1 else 'are'} not switched on"
        )
        where = ("data_efficiency", group, part, "enabled")
        yield make(where, message, help=f"write false here to switch {part} off, or true above")
