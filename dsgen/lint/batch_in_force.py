"""The three batch sizes as DeepSpeed completes them: what is left out follows from what is given and the ranks.

``train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks`` (sequences; ranks of data
parallelism), with accumulation 1 where only one size is given. Holds for every known version; under elasticity the
sizes are chosen by other means. Source: deepspeed/runtime/config.py:_set_batch_related_parameters, _batch_assertion.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import data_parallel_ranks, whole
from dsgen.lint.in_force import Value
from dsgen.lint.target import LintTarget

TOTAL, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
_RANKS = "data-parallel ranks"


def with_batch_sizes(values: Iterable[Value], file: ConfigFile, target: LintTarget) -> tuple[Value, ...]:
    """The values in force with the batch sizes that follow from others, or what they would follow from."""
    given = {key: file.get(key) for key in (TOTAL, MICRO, STEPS) if file.get(key) is not None}
    if any(whole(size) is None for size in given.values()) or file.get("elasticity", "enabled") is True:
        return tuple(values)
    sizes = _completed({key: int(size) for key, size in given.items()}, data_parallel_ranks(file, target))
    return tuple(
        replace(value, value=sizes[value.path[0]][0], origin="derived", why=sizes[value.path[0]][1])
        if len(value.path) == 1 and value.path[0] in sizes and value.origin == "default"
        else value
        for value in values
    )


def _completed(given: Mapping[str, int], ranks: int | None) -> dict[str, tuple[int | None, str]]:
    """Each size that is left out, with how it comes about; None where the ranks are not known, or do not divide."""
    total, micro, steps = (given.get(key) for key in (TOTAL, MICRO, STEPS))
    of_ranks = f"{ranks} {_RANKS}" if ranks else f"the {_RANKS} (--world-size)"
    if total is None and micro is None:
        return {}
    found: dict[str, tuple[int | None, str]] = {}
    if steps is None and (total is None or micro is None):
        steps = 1
        found[STEPS] = steps, "one step where only one of the sizes is given"
    if total is None and micro is not None and steps is not None:
        found[TOTAL] = micro * steps * ranks if ranks else None, f"{micro} x {steps} x {of_ranks}"
    elif total is not None and micro is None and steps is not None:
        found[MICRO] = _divided(total, ranks and ranks * steps), f"{total} / ({of_ranks} x {steps})"
    elif total is not None and micro is not None and steps is None:
        found[STEPS] = _divided(total, ranks and ranks * micro), f"{total} / ({of_ranks} x {micro})"
    return found


def _divided(total: int, by: int | None) -> int | None:
    return total // by if by and total % by == 0 else None
