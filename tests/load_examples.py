"""Loads configs with the real DeepSpeed, through the real Trainer's arguments where those fill "auto".

Run as its own process with a JSON list of jobs; prints one JSON object: config to
[micro-batch, accumulation, global batch] as the library understood them.
"""

import json
import sys
from unittest import mock

from deepspeed.runtime import config as deepspeed_config


def fill_auto(path: str, arguments: list[str], world_size: int) -> dict:
    """What the Trainer hands to DeepSpeed for this file and these command-line arguments."""
    from transformers import HfArgumentParser, TrainingArguments
    from transformers.integrations import HfTrainerDeepSpeedConfig

    (training,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(arguments)
    filled = HfTrainerDeepSpeedConfig(path)
    with mock.patch.object(TrainingArguments, "world_size", world_size):
        filled.trainer_config_process(training)
        # Raises where the file and the arguments say different things.
        filled.trainer_config_finalize(training, model=None, num_training_steps=training.max_steps)
    return filled.config


def load(job: dict) -> list[int]:
    source = job["config"]
    if job["arguments"] is not None:
        source = fill_auto(source, job["arguments"], job["world_size"])
        assert '"auto"' not in json.dumps(source), "left for nobody to fill"
    # The parser asks torch.distributed for the ranks; none run here.
    with (
        mock.patch.object(deepspeed_config.dist, "get_rank", return_value=0),
        mock.patch.object(deepspeed_config.dist, "get_world_size", return_value=job["world_size"]),
    ):
        read = deepspeed_config.DeepSpeedConfig(source)
    assert read.world_size == job["world_size"]
    return [read.train_micro_batch_size_per_gpu, read.gradient_accumulation_steps, read.train_batch_size]


if __name__ == "__main__":
    answers = {job["config"]: load(job) for job in json.loads(sys.argv[1])}
    print("\n" + json.dumps(answers))  # noqa: T201
