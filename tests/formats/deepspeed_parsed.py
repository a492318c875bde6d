"""Run by a test: configs on standard input, what DeepSpeed's own parser makes of them on standard output."""

import contextlib
import json
import os
import sys
from typing import Any

os.environ["DS_ACCELERATOR"] = "cpu"


def parsed(config: dict[str, Any]) -> dict[str, Any] | None:
    """Values as they act; None where DeepSpeed refuses the config."""
    from deepspeed.runtime.config import DeepSpeedConfig

    try:
        made = DeepSpeedConfig(config)
    except Exception:
        return None
    zero = made.zero_config
    stage = int(zero.stage)
    precision = "bf16" if made.bfloat16_config.enabled else "fp16" if made.float16_config.enabled else "fp32"
    return {
        "zero_stage": stage,
        "precision": precision,
        "offload_optimizer": _device(zero.offload_optimizer) if stage else "none",
        "offload_parameters": _device(zero.offload_param) if stage == 3 else "none",
        "overlap_comm": zero.overlap_comm,
        "gradient_clipping": made.gradient_clipping,
        "pin_memory": zero.offload_optimizer.pin_memory if zero.offload_optimizer else None,
        "buckets": {
            "reduce": zero.reduce_bucket_size,
            "allgather": zero.allgather_bucket_size,
            "prefetch": zero.prefetch_bucket_size,
            "max_live_parameters": zero.max_live_parameters,
            "max_reuse_distance": zero.max_reuse_distance,
            "persistence_threshold": zero.param_persistence_threshold,
            "sub_group_size": zero.sub_group_size,
        },
    }


def _device(section: Any) -> str:
    device = section.device if section else "none"
    return str(getattr(device, "value", device))


if __name__ == "__main__":
    configs = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # DeepSpeed prints of its own
        answers = [parsed(config) for config in configs]
    json.dump(answers, sys.stdout)
