"""Where ZeRO++ acts, and what it does not go with."""

from dsgen.legality.values import Case, Row
from dsgen.plan import ZeroPP

_ONLY = ("deepspeed",)
_NONE = ZeroPP()


def _size(case: Case) -> int:
    return case.plan.zeropp.secondary_partition


def _quantizes(case: Case) -> bool:
    return case.plan.zeropp.quantized_weights or case.plan.zeropp.quantized_gradients


ROWS = (
    Row(
        name="zeropp-in-fsdp2",
        formats=("fsdp2",),
        forbidden=lambda case: case.plan.zeropp != _NONE,
        why="ZeRO++ is DeepSpeed's; FSDP2 keeps traffic inside a node with shard_group (HSDP); leave zeropp out",
        source="torch/distributed/fsdp/_fully_shard/_fully_shard.py:fully_shard",
        library="torch",
        fields=("zeropp",),
    ),
    Row(
        name="zeropp-below-stage-3",
        formats=_ONLY,
        forbidden=lambda case: case.plan.zeropp != _NONE and case.plan.zero_stage != 3,
        why="ZeRO++ makes the gathering of weights cheaper, which only stage 3 does; use zero_stage 3, or no zeropp",
        source="deepspeed/runtime/engine.py:_configure_zero_optimizer (only stage 3 is handed the keys)",
        fields=("zeropp", "zero_stage"),
    ),
    Row(
        name="secondary-partition-that-does-not-divide-the-ranks",
        formats=_ONLY,
        forbidden=lambda case: case.plan.world_size % min(_size(case), case.plan.world_size) != 0,
        why=(
            "{world_size} ranks are no whole number of groups of {zeropp.secondary_partition}; use the GPUs of a node, "
            "{gpus_per_node}: the second copy is there to keep the backward pass within it"
        ),
        source="deepspeed/utils/groups.py:_create_zero_param_parallel_group (_ensure_divisibility)",
        fields=("zeropp",),
    ),
    Row(
        name="secondary-partition-beyond-a-node",
        formats=_ONLY,
        forbidden=lambda case: _size(case) > case.plan.gpus_per_node,
        why=(
            "a secondary partition of {zeropp.secondary_partition} spans nodes of {gpus_per_node} GPUs, so the "
            "backward pass would cross the network for a copy that only takes memory; use at most {gpus_per_node}"
        ),
        source="deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig (ideal is the number of ranks of a node)",
        fields=("zeropp",),
    ),
    Row(
        name="zeropp-with-parameter-offload",
        formats=_ONLY,
        forbidden=lambda case: case.plan.zeropp != _NONE and case.plan.offload_parameters != "none",
        why="ZeRO++ spares the network, parameter offload takes PCIe instead; dsgen has not seen the two run together",
        source="dsgen itself: not run",
        fields=("zeropp", "offload_parameters"),
    ),
    Row(
        name="zeropp-with-a-split-model",
        formats=_ONLY,
        forbidden=lambda case: case.plan.zeropp != _NONE and (case.plan.tensor_parallel > 1 or case.plan.ulysses > 1),
        why=(
            "ZeRO++ makes its groups of neighbouring ranks, as tensor parallelism and Ulysses do: dsgen has not seen "
            "them run together; use one of them"
        ),
        source="deepspeed/utils/groups.py:_create_zero_param_parallel_group",
        fields=("zeropp", "tensor_parallel", "ulysses"),
    ),
    Row(
        name="quantized-gradients-of-ranks-that-fill-no-nodes",
        formats=_ONLY,
        forbidden=lambda case: (
            case.plan.zeropp.quantized_gradients
            and case.plan.world_size % min(case.plan.gpus_per_node, case.plan.world_size) != 0
        ),
        why="qgZ exchanges within whole nodes: {world_size} ranks are not a multiple of {gpus_per_node}",
        source="deepspeed/utils/groups.py:_get_local_all_to_all_group",
        fields=("zeropp",),
    ),
    Row(
        name="quantized-traffic-in-fp32",
        formats=_ONLY,
        forbidden=lambda case: _quantizes(case) and case.plan.precision == "fp32",
        why="DeepSpeed's quantizer takes 16-bit tensors only; use precision: bf16 or fp16, or no quantized traffic",
        source="deepspeed/runtime/zero/partition_parameters.py:CUDAQuantizer",
        fields=("zeropp", "precision"),
    ),
)
