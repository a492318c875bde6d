from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Option of a script that takes TrainingArguments -> key of the config that transformers compares with it.
_PAIRS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("per_device_train_batch_size", ("train_micro_batch_size_per_gpu",)),
    ("gradient_accumulation_steps", ("gradient_accumulation_steps",)),
    ("max_grad_norm", ("gradient_clipping",)),
    ("learning_rate", ("optimizer", "params", "lr")),
    ("learning_rate", ("scheduler", "params", "warmup_max_lr")),
    ("weight_decay", ("optimizer", "params", "weight_decay")),
    ("adam_epsilon", ("optimizer", "params", "eps")),
    ("warmup_steps", ("scheduler", "params", "warmup_num_steps")),
    ("fp16", ("fp16", "enabled")),
    ("bf16", ("bf16", "enabled")),
)
# With these options the pair is not compared, or by another value.
_UNLESS = {
    "per_device_train_batch_size": "auto_find_batch_size",
    "fp16": "fp16_full_eval",
    "bf16": "bf16_full_eval",
}
_WORDS = {"true": True, "false": False}


@rule(
    "XF308",
    kinds=("deepspeed",),
    about=(
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "gradient_clipping",
        "optimizer",
        "scheduler",
        "fp16",
        "bf16",
    ),
    source="transformers/integrations/deepspeed.py:trainer_config_process, trainer_config_finalize",
)
def launch_line_and_config_disagree(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A launch line hands the config to the Trainer (``--deepspeed``) with other numbers than stand in it: it raises.

    transformers compares batch sizes, rates and number formats of its arguments with the config's. Write "auto" in the
    config: then the argument is the one source. TC308 finds the same in code.

    ```sh beside run.sh
    torchrun --nproc_per_node 8 train.py --deepspeed ds_config.json --learning_rate 5e-5 --bf16
    ```

    ```json bad
    {"train_micro_batch_size_per_gpu": "auto", "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
     "zero_optimization": {"stage": 2}}
    ```

    ```json good
    {"train_micro_batch_size_per_gpu": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
     "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}
    ```
    """
    if target.beside is None or target.loaded_by != "transformers":
        return
    for options, place in target.beside.arguments:
        for name, path in _PAIRS:
            if _UNLESS.get(name) in options:
                continue
            mine, theirs = _value(options.get(name)), file.get(*path)
            if mine is None or type(theirs) not in (int, float, bool) or mine == theirs:
                continue
            yield error(
                path,
                f"{'.'.join(path)} is {_shown(theirs)} here, and the launch line says --{name} {_shown(mine)}: the "
                "Trainer raises",
                help='write "auto" here: then the line is the one source',
                related=((place, f"--{name} {_shown(mine)}"),),
            )


def _value(text: str | None) -> float | bool | None:
    """What an option says; None for a variable of the shell and all else that is no value."""
    if text is None:
        return None
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return float(text)
    except ValueError:
        return None


def _shown(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
