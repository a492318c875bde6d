"""What DeepSpeed's offload does not do, or does differently, below stage 3 or without a disk."""

from math import ceil

from dsgen.legality.values import Case, Row


def _uses_nvme(case: Case) -> bool:
    return "nvme" in (case.plan.offload_optimizer, case.plan.offload_parameters)


ROWS = (
    Row(
        name="parameter-offload-below-stage-3",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.offload_parameters != "none" and case.plan.zero_stage < 3,
        why=(
            "DeepSpeed ignores offload_param below ZeRO stage 3, so the parameters would stay on the GPU; "
            "use zero_stage 3, or offload_optimizer instead"
        ),
        source=(
            "deepspeed/runtime/engine.py:_configure_zero_optimizer (only stage 3 is handed offload_param); "
            "deepspeed/runtime/zero/offload_config.py:DeepSpeedZeroOffloadParamConfig"
        ),
        fields=("offload_parameters", "zero_stage"),
    ),
    Row(
        name="optimizer-offload-without-zero",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.offload_optimizer != "none" and case.plan.zero_stage == 0,
        why=(
            "at ZeRO stage 0 DeepSpeed offloads nothing, yet still picks DeepSpeedCPUAdam, which fails on GPU "
            "parameters at the first step; use zero_stage 1, 2 or 3 (also on one GPU)"
        ),
        source=(
            "deepspeed/runtime/engine.py:get_optimizer_configuration (asks no stage, only the device); "
            "deepspeed/ops/adam/cpu_adam.py:step"
        ),
        fields=("offload_optimizer", "zero_stage"),
    ),
    Row(
        name="nvme-optimizer-offload-below-stage-3",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.offload_optimizer == "nvme" and case.plan.zero_stage in (1, 2),
        why=(
            "at ZeRO stages 1 and 2 DeepSpeed takes any offload device for the CPU, so host memory would fill and "
            "the disk stay empty; use zero_stage 3 for nvme, or offload_optimizer: cpu"
        ),
        source="deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer (device != none sets cpu_offload)",
        fields=("offload_optimizer", "zero_stage"),
    ),
    Row(
        name="nvme-offload-without-path",
        formats=("deepspeed",),
        forbidden=lambda case: _uses_nvme(case) and case.hardware.nvme_path is None,
        why="nvme offload needs a folder on a local drive; state hardware.nvme: {{path: ...}}",
        source=(
            "deepspeed/runtime/zero/stage3.py:_configure_tensor_swapping (TypeError on None); "
            "deepspeed/runtime/zero/partition_parameters.py:_validate_remote_device"
        ),
        fields=("offload_optimizer", "offload_parameters"),
    ),
    Row(
        name="nvme-parameter-buffer-too-small",
        formats=("deepspeed",),
        forbidden=lambda case: (
            case.plan.offload_parameters == "nvme"
            and case.plan.swap.parameter_buffer_size < ceil(case.shapes.largest_tensor / max(1, case.plan.shards))
        ),
        why=(
            "a buffer of offload_param holds {swap.parameter_buffer_size} elements, fewer than the largest parameter's "
            "shard on each rank, so the first swap stops with 'More elements ... than buffer size'; use a larger "
            "offload_param.buffer_size"
        ),
        source="deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:get_buffer",
        fields=("offload_parameters",),
    ),
    Row(
        name="activation-offload-not-in-format",
        formats=("deepspeed",),
        forbidden=lambda case: case.plan.offload_activations,
        why=(
            "no key of a DeepSpeed config offloads activations unless the model's own code calls "
            "deepspeed.checkpointing.configure; leave offload_activations out, or use checkpointing: full"
        ),
        source="deepspeed/runtime/activation_checkpointing/checkpointing.py:configure (never called by the engine)",
        fields=("offload_activations",),
    ),
)
