from collections.abc import Iterator

from dsgen.lint import schema as sch
from dsgen.lint.coerce import by_pydantic
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, optimizer_type, stage
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_KEYS = (
    ("fp16", "fp16_master_weights_and_grads"),
    ("bf16", "bf16_master_weights_and_grads"),
    ("bf16", "bf16_optimizer_states"),
)


@rule(
    "DS407",
    kinds=("deepspeed",),
    about=("fp16_master_weights_and_grads", "bf16_master_weights_and_grads", "bf16_optimizer_states"),
    source="deepspeed/runtime/config.py:_do_error_check",
)
def sixteen_bit_states_without_what_they_need(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Master weights or optimizer states in 16 bits where DeepSpeed does not support them.

    fp16_master_weights_and_grads and bf16_master_weights_and_grads need ZeRO stage 1, 2 or 3 (fp16 exactly stage 2
    before 0.18.3); bf16_optimizer_states needs bf16_master_weights_and_grads as well. Without
    it, 16-bit master weights need the optimizer on the CPU.

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}}
    ```

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true, "bf16_optimizer_states": true}}
    ```

    ```json good --deepspeed 0.19.8
    {"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true,
     "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}
    ```
    """
    in_force = stage(file, target)
    for name, key in _KEYS:
        section = "bfloat16" if name == "bf16" and not file.has("bf16") else name  # the old name of the section
        if not _is_on(file, section, key) or in_force is None or not _exists(name, key, target):
            continue
        allowed = (2,) if name == "fp16" and not target.since("0.18.3") else (1, 2, 3)
        if in_force not in allowed:
            stages = ", ".join(map(str, allowed))
            message = f"{key} needs ZeRO stage {stages}; at stage {in_force} {target.library} raises"
            yield error((section, key), message, help=f"use such a stage, or remove {key}", on="key")
        elif key == "bf16_optimizer_states" and not _is_on(file, section, "bf16_master_weights_and_grads"):
            message = f"{key} needs bf16_master_weights_and_grads: {target.library} raises"
            yield error((section, key), message, help='write "bf16_master_weights_and_grads": true', on="key")
        elif key.endswith("_master_weights_and_grads") and _steps_elsewhere(file, section):
            yield error(
                (section, key),
                f"{key} needs the optimizer on the CPU (DeepSpeedCPUAdam){_or_states(name)}: the engine asserts",
                help='write "offload_optimizer": {"device": "cpu"} in zero_optimization',
                on="key",
            )


def _is_on(file: ConfigFile, section: str, key: str) -> bool:
    """As pydantic reads a switch: 1, "true" and "on" as well."""
    return by_pydantic(file.get(section, key, default=False), ("boolean",), modern=True) is True


def _steps_elsewhere(file: ConfigFile, section: str) -> bool:
    """Whether the config's own Adam steps on the GPU, in fp32 states."""
    in_16_bit = section != "fp16" and _is_on(file, section, "bf16_optimizer_states")
    on_gpu = offload_device(file, "offload_optimizer") in (None, "none")
    return on_gpu and not in_16_bit and optimizer_type(file) in ("adam", "adamw")


def _or_states(section: str) -> str:
    return ", or bf16_optimizer_states" if section == "bf16" else ""


def _exists(section: str, key: str, target: LintTarget) -> bool:
    schema = sch.deepspeed_schema()["properties"][section]["properties"][key]
    return sch.exists(schema, target.deepspeed)
