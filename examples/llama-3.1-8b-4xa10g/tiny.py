"""What ``--size tiny`` changes in the config, so that it runs anywhere in seconds."""

import copy
from typing import Any

SEQUENCE_LENGTH = 32


def tiny_config(planned: dict[str, Any], on_gpu: bool) -> dict[str, Any]:
    config = copy.deepcopy(planned)
    zero = config["zero_optimization"]
    if config["train_batch_size"] != "auto":
        del config["train_batch_size"]  # holds for the planned number of GPUs only
    for key in ("reduce_bucket_size", "allgather_bucket_size"):
        if key in zero:
            zero[key] = min(zero[key], 2**20)
    if zero["stage"] == 3:
        # Parameters below the threshold stay whole on every rank: all of a tiny model.
        zero["stage3_param_persistence_threshold"] = 0
    if not on_gpu:
        _for_cpu(config)
    return config


def _for_cpu(config: dict[str, Any]) -> None:
    """Without a compiler, libaio and fp16: torch's Adam, host memory for NVMe, bf16."""
    if config["optimizer"]["type"].startswith("Adam"):
        config["optimizer"]["params"]["torch_adam"] = True
    for section in ("offload_optimizer", "offload_param"):
        if section in config["zero_optimization"]:
            config["zero_optimization"][section] = {"device": "cpu"}
    config.pop("aio", None)
    if "fp16" in config:
        config["bf16"] = {"enabled": config.pop("fp16")["enabled"]}
        if config.get("data_types") == {"grad_accum_dtype": "fp16"}:
            config["data_types"] = {"grad_accum_dtype": "bf16"}
