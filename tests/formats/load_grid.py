"""Reads a JSON list of jobs (config, arguments, world_size) from standard input; parses each with the real
DeepSpeedConfig, "auto" filled by the real Trainer; prints one JSON list of what the library understood."""

import json
import sys
from typing import Any
from unittest import mock

from deepspeed.runtime import config as deepspeed_config


def filled(job: dict) -> dict:
    from transformers import HfArgumentParser, TrainingArguments
    from transformers.integrations import HfTrainerDeepSpeedConfig

    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(job["arguments"])
    config = HfTrainerDeepSpeedConfig(job["config"])
    with mock.patch.object(TrainingArguments, "world_size", job["world_size"]):
        config.trainer_config_process(arguments)
        # Raises where the file and the arguments say different things.
        config.trainer_config_finalize(arguments, model=None, num_training_steps=arguments.max_steps)
    return config.config


def understood(job: dict) -> dict:
    config = job["config"] if job["arguments"] is None else filled(job)
    assert '"auto"' not in json.dumps(config), config
    with (
        mock.patch.object(deepspeed_config.dist, "get_rank", return_value=0),
        mock.patch.object(deepspeed_config.dist, "get_world_size", return_value=job["world_size"]),
    ):
        read = deepspeed_config.DeepSpeedConfig(config)
    zero = read.zero_config

    def device(section: Any) -> str:
        return "none" if section is None else str(getattr(section.device, "value", section.device))

    return {
        "batch": [read.train_micro_batch_size_per_gpu, read.gradient_accumulation_steps, read.train_batch_size],
        "precision": "bf16" if read.bfloat16_config.enabled else "fp16" if read.float16_config.enabled else "fp32",
        "dynamic_loss_scale": read.float16_config.loss_scale == 0,
        "sums": read.grad_accum_dtype,
        "clipping": read.gradient_clipping,
        "stage": int(zero.stage),
        "split": read.tensor_parallel_config.autotp_size,
        "zeropp": [zero.zero_hpz_partition_size, zero.zero_quantized_weights, zero.zero_quantized_gradients],
        "saves_whole": zero.gather_16bit_weights_on_model_save,
        "optimizer_device": device(zero.offload_optimizer),
        "parameter_device": device(zero.offload_param),
        "reduce": zero.reduce_bucket_size,
        "prefetch": zero.prefetch_bucket_size,
        "persistence": zero.param_persistence_threshold,
        "live": zero.max_live_parameters,
        "optimizer": [read.optimizer_name, read.optimizer_params],
        "scheduler": [read.scheduler_name, read.scheduler_params],
    }


if __name__ == "__main__":
    print("\n" + json.dumps([understood(job) for job in json.load(sys.stdin)]))  # noqa: T201
