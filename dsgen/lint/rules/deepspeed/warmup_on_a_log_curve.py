from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, info
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS515",
    kinds=("deepspeed",),
    about=("scheduler",),
    source="deepspeed/runtime/lr_schedules.py:WarmupLR._get_gamma (log(step + 1) / log(warmup_num_steps))",
)
def warmup_on_a_log_curve(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A warm-up without warmup_type: it follows a logarithm, not a line (advice, shown with ``--info``).

    By half of its steps the rate is at nine tenths of its maximum, for all of DeepSpeed's warm-ups. Write linear
    where that is what you mean.

    ```json bad
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}
    ```

    ```json good
    {"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100,
     "warmup_type": "linear"}}}
    ```
    """
    params = file.section("scheduler", "params")
    if file.get("scheduler", "type") not in ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR") or "warmup_type" in params:
        return
    if "warmup_num_steps" in params and not is_misspelt(file, target, "scheduler", "params", "warmup_type"):
        yield info(
            ("scheduler", "params", "warmup_num_steps"),
            "the warm-up follows a logarithm (warmup_type log, the default): most of it happens in the first steps",
            help='write "warmup_type": "linear" for a straight one, or "log" to keep this',
            on="key",
        )
