"""Own process: what accelerate says of a config file beside the fields of its own file, and who wins a count."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def plugin(fields: str) -> str | None:
    """What the plugin raises where ``accelerate launch`` passes these fields of its file on."""
    from accelerate.utils import DeepSpeedPlugin

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ds.json")
        file.write_text('{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}', "utf-8")
        os.environ["ACCELERATE_CONFIG_DS_FIELDS"] = fields
        try:
            DeepSpeedPlugin(hf_ds_config=str(file))
        except ValueError as error:
            return str(error)
    return None


def counted(stated: str, in_code: int) -> int:
    """Micro-batches per step of an ``Accelerator`` that was started with a file that states another number."""
    from accelerate import Accelerator

    os.environ["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] = stated
    return int(Accelerator(cpu=True, gradient_accumulation_steps=in_code).gradient_accumulation_steps)


def zero3_init(stage: int) -> bool:
    """Whether zero3_init_flag is still on after the plugin has seen the stage."""
    from accelerate.utils import DeepSpeedPlugin

    os.environ.pop("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", None)
    return bool(DeepSpeedPlugin(zero_stage=stage, zero3_init_flag=True).zero3_init_flag)


def without_zero() -> str | None:
    """What the plugin raises at a config without zero_optimization."""
    from accelerate.utils import DeepSpeedPlugin

    os.environ.pop("ACCELERATE_CONFIG_DS_FIELDS", None)
    try:
        DeepSpeedPlugin(hf_ds_config={"train_micro_batch_size_per_gpu": 1})
    except ValueError as error:
        return str(error)
    return None


def mismatches(config: dict[str, Any], **arguments: Any) -> list[str]:
    """What transformers notes as contradictions, with which training then stops."""
    from transformers import TrainingArguments

    with tempfile.TemporaryDirectory() as folder:
        made = TrainingArguments(folder, deepspeed=config, use_cpu=True, **arguments)
    return list(made.hf_deepspeed_config.mismatches)


def main() -> None:
    fields: list[str] = json.load(sys.stdin)
    answer: dict[str, Any] = {"raises": {field: plugin(f"deepspeed_config_file,{field}") for field in fields}}
    answer["counted"] = counted("8", 4)
    answer["init"] = [zero3_init(2), zero3_init(3)]
    answer["without_zero"] = without_zero()
    zero = {"zero_optimization": {"stage": 1}}
    full = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 0.5, **zero}
    rates = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "eps": 1e-6}}, "bf16": {"enabled": True}}
    answer["defaults"] = mismatches(full | rates)
    stated = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_grad_norm": 0.5, "bf16": True}
    answer["stated"] = mismatches(full | rates, learning_rate=1e-4, adam_epsilon=1e-6, **stated)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
