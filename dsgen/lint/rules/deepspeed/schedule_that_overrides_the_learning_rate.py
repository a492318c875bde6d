import json
from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, insert, replace, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget

# Beyond it stand infinities and slips, which are no rates.
_LARGEST = 1e9


@rule(
    "DS514",
    kinds=("deepspeed",),
    about=("scheduler",),
    source="deepspeed/runtime/lr_schedules.py:WarmupLR, WarmupDecayLR",
)
def schedule_that_overrides_the_learning_rate(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A warm-up that goes to another learning rate than the optimizer's: the schedule's wins.

    WarmupLR and WarmupDecayLR set the rate of every step; optimizer.params.lr is never used. Left out,
    warmup_max_lr is 0.001 in WarmupDecayLR (in WarmupLR before DeepSpeed 0.17.2, too), ten times and more what
    fine-tuning takes.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
     "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10}}}
    ```

    ```json fixed
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
     "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10,
     "warmup_max_lr": 0.0001}}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
     "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.0001, "warmup_num_steps": 10}}}
    ```
    """
    kind = file.get("scheduler", "type")
    if kind not in ("WarmupLR", "WarmupDecayLR") or not isinstance(file.get("scheduler", "params"), dict):
        return
    default = None if kind == "WarmupLR" and target.since("0.17.2") else 0.001
    path = ("scheduler", "params", "warmup_max_lr")
    top, rate = file.get(*path, default=default), file.get("optimizer", "params", "lr")
    given = file.has(*path)
    if is_misspelt(file, target, *path):
        return
    if _is_rate(top) and (_is_rate(rate) or (rate == "auto" and not given)) and top != rate:
        yield warning(
            path if given else ("scheduler", "params"),
            f"{kind} goes to warmup_max_lr {top}{'' if given else ' (its default)'}, "
            f"whatever optimizer.params.lr says ({rate})",
            help=f"write {json.dumps(rate)} for both" if given else f'write "warmup_max_lr": {json.dumps(rate)}',
            related=((("optimizer", "params", "lr"), "never used"),),
            fix=(replace if given else insert)("warm up to the optimizer's rate", path, rate, safe=False),
        )


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
