"""Configs for what only the engine checks: optimizers, schedules, ZeRO with offload, precision and sums, mixed."""

import random
from typing import Any

OPTIMIZERS: list[dict[str, Any] | None] = [
    {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
    {"type": "adam", "params": {"lr": 1e-3, "adam_w_mode": False}},
    {"type": "Adam", "params": {"lr": 1e-3, "amsgrad": True}},
    {"type": "Adam", "params": {"lr": "1e-3"}},
    {"type": "AdamW", "params": {"lr": 1e-3, "learning_rate": 1}},
    {"type": "AdamW", "params": {"lr": 1e-3, "max_grad_norm": 1.0}},
    {"type": "AdamW", "params": {}},
    {"type": "AdamW"},
    {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}},
    {"type": "SGD", "params": {"lr": "auto"}},
    {"type": "sgd", "params": {"lr": 0.1}},
    {"type": "Adagrad", "params": {"lr": 0.1}},
    {"type": "RMSprop", "params": {"lr": 0.01}},
    {"type": "AdamX", "params": {"lr": 0.1}},
    {"type": "OneBitAdam", "params": {"lr": 0.1}},
    {"params": {"lr": 0.1}},
]
SCHEDULERS: list[dict[str, Any] | None] = [
    *(None, None, None, None),
    {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 1e-3, "warmup_num_steps": 10}},
    {"type": "WarmupLR", "params": {"warmup_num_steps": 0}},
    {"type": "WarmupLR", "params": {"warmup_steps": 10}},
    {"type": "WarmupLR"},
    {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10}},
    {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10}},
    {"type": "WarmupCosineLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10, "warmup_type": "linear"}},
    {"type": "WarmupCosineLR", "params": {"total_num_steps": 100, "warmup_max_lr": 1}},
    {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3}},
    {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4}},
    {"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 1e-4}},
    {"type": "LRRangeTest", "params": {"lr_range_test_step_size": 0}},
    {"type": "StepLR", "params": {"step_size": 10}},
    {"type": "warmuplr", "params": {}},
]
PRECISIONS: list[dict[str, Any]] = [
    *({}, {}, {"bf16": {"enabled": True}}, {"bf16": {"enabled": True}}, {"bf16": {"enabled": True}}),
    {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}},
    {"bf16": {"enabled": True, "bf16_optimizer_states": True}},
    {"bf16": {"enabled": True, "immediate_grad_update": True}},
    {"bf16": {"enabled": True}, "fp16": {"enabled": True}},
    {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}},
]
MORE: list[dict[str, Any]] = [
    *({} for _ in range(8)),
    {"gradient_accumulation_steps": 2, "train_batch_size": 2},
    *({"gradient_clipping": value} for value in (0, 1, 0.5, "1.0", "auto", -1)),
    {"prescale_gradients": True},
    {"gradient_predivide_factor": 2.0},
    *({"data_types": {"grad_accum_dtype": value}} for value in ("fp32", "bf16", "fp16", "double")),
    *({"gradient_allreduce_op": value} for value in ("sum", "max")),
    *({"communication_data_type": value} for value in ("fp32", "bf16", "bfloat16")),
    *({"steps_per_print": value} for value in (1, 0, "2")),
    {"wall_clock_breakdown": True},
    {"memory_breakdown": True},
    {"zero_allow_untested_optimizer": False},
    {"flops_profiler": {"enabled": True, "profile_step": 1}},
    {"train_batch_size": 3, "train_micro_batch_size_per_gpu": 2},
    {"managed_gradient_accumulation": False},
    {"sparse_gradients": False},
]
ZERO_MORE: list[dict[str, Any]] = [
    *({} for _ in range(8)),
    *({"offload_optimizer": {"device": device}} for device in ("cpu", "none")),
    {"offload_optimizer": {"device": "cpu", "ratio": 0.5}},
    {"offload_param": {"device": "cpu"}},
    {"offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}},
    {"offload_optimizer": {"device": "nvme"}},
    {"reduce_scatter": False},
    *({"allgather_bucket_size": size} for size in (1000, 1001)),
    *({"reduce_bucket_size": size} for size in (0, 1000)),
    {"overlap_comm": True},
    {"contiguous_gradients": False},
    {"round_robin_gradients": True},
    {"compute_grad_norm": False},
    {"elastic_checkpoint": True},
    {"stage3_max_live_parameters": 0},
    {"sub_group_size": 100},
    {"legacy_stage1": True},
    {"zero_hpz_partition_size": 2},
    {"ignore_unused_parameters": False},
    {"cpu_offload": True},
]


def engine_config(number: int) -> dict[str, Any]:
    """Config number ``number``: always the same. About half of them hold a mistake."""
    rng = random.Random(number)
    config: dict[str, Any] = {"train_batch_size": 1, "zero_allow_untested_optimizer": True, "steps_per_print": 100}
    config |= {"optimizer": rng.choice(OPTIMIZERS if rng.random() < 0.3 else OPTIMIZERS[:3])}
    scheduler = rng.choice(SCHEDULERS)
    if scheduler and rng.random() < 0.6:
        config["scheduler"] = scheduler
    config |= rng.choice(PRECISIONS if rng.random() < 0.4 else PRECISIONS[:3])
    config |= rng.choice(MORE) if rng.random() < 0.6 else {}
    config["zero_optimization"] = {"stage": rng.randrange(4)} | (rng.choice(ZERO_MORE) if rng.random() < 0.7 else {})
    return config
