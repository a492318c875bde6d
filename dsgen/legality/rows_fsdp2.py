"""What FSDP2 does not do, and what dsgen does not write for it."""

from dsgen.legality.values import Case, Row
from dsgen.plan import Device

_ONLY = ("fsdp2",)

# What FSDP2 has of the stages and offloads: the rows below say why not the rest, and the planner climbs these.
STAGES = (2, 3)
OFFLOADS: tuple[tuple[Device, Device], ...] = (("none", "none"), ("cpu", "cpu"))  # optimizer, parameters

_WRITTEN = frozenset({"adamw", "adam", "sgd"})


def _offload(case: Case) -> tuple[Device, Device]:
    return case.plan.offload_optimizer, case.plan.offload_parameters


def _model_ranks(case: Case) -> int:
    plan = case.plan
    return plan.tensor_parallel * plan.pipeline_parallel * plan.context_parallel * plan.ulysses * plan.expert_parallel


def _is_of_others(case: Case) -> bool:
    return case.target.loaded_by == "transformers" or case.shapes.factory is not None


ROWS = (
    Row(
        name="factory-and-a-class-of-transformers",
        formats=_ONLY,
        forbidden=lambda case: case.target.loaded_by == "transformers" and case.shapes.factory is not None,
        why="the model is either made by a factory or a class of transformers; leave out loaded_by, or factory",
        source="dsgen itself: dsgen/formats/fsdp2/folder.py",
        library="torch",
    ),
    Row(
        name="factory-in-deepspeed",
        formats=("deepspeed",),
        forbidden=lambda case: case.shapes.factory is not None,
        why=(
            "dsgen calls a factory in FSDP2 code only, not yet in a script for DeepSpeed; leave factory out and use "
            "the config with your own script, or use target: {{format: fsdp2}}"
        ),
        source="dsgen itself: dsgen/formats/deepspeed/folder.py",
    ),
    Row(
        name="fsdp2-before-torch-2-6",
        formats=_ONLY,
        forbidden=lambda _case: True,
        why="dsgen writes FSDP2 for torch 2.6 and newer, where torch.distributed.fsdp.fully_shard is public",
        source="torch/distributed/fsdp/_fully_shard/_fully_shard.py:fully_shard",
        library="torch",
        until="2.6",
    ),
    Row(
        name="stage-0-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: case.plan.zero_stage == 0,
        why=(
            "fully_shard always shards parameters, gradients and optimizer states: it has no ZeRO stage 0; "
            "use zero_stage 2 or 3, or shard_group: 1, which keeps a whole copy on every GPU"
        ),
        source="torch/distributed/fsdp/_fully_shard/_fully_shard.py:fully_shard",
        library="torch",
        fields=("zero_stage",),
    ),
    Row(
        name="stage-1-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: case.plan.zero_stage == 1,
        why=(
            "fully_shard always shards gradients with the optimizer states: it has no ZeRO stage 1; use zero_stage 2 "
            "(weights gathered from the forward to the backward pass) or 3"
        ),
        source="torch/distributed/fsdp/_fully_shard/_fully_shard.py:fully_shard",
        library="torch",
        fields=("zero_stage",),
    ),
    Row(
        name="nvme-offload-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: "nvme" in _offload(case),
        why="FSDP2 offloads to host memory only (CPUOffloadPolicy); use cpu, or target: {{format: deepspeed}} for nvme",
        source="torch/distributed/fsdp/_fully_shard/_fsdp_api.py:CPUOffloadPolicy",
        library="torch",
        fields=("offload_optimizer", "offload_parameters"),
    ),
    Row(
        name="offload-of-one-without-the-other-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: "nvme" not in _offload(case) and _offload(case) not in OFFLOADS,
        why=(
            "CPUOffloadPolicy moves shards, gradients and optimizer states to host memory together, not optimizer "
            "{offload_optimizer} with parameters {offload_parameters}; wish for cpu in both, or in neither"
        ),
        source="torch/distributed/fsdp/_fully_shard/_fsdp_api.py:CPUOffloadPolicy",
        library="torch",
        fields=("offload_optimizer", "offload_parameters"),
    ),
    Row(
        name="shard-group-that-does-not-divide-the-ranks",
        formats=_ONLY,
        forbidden=lambda case: case.plan.shard_group is not None and case.plan.world_size % case.plan.shard_group != 0,
        why=(
            "{world_size} GPUs are no whole number of groups of {shard_group}: HSDP's mesh is groups x shard_group; "
            "use a divisor of {world_size}"
        ),
        source="torch/distributed/device_mesh.py:init_device_mesh",
        library="torch",
        fields=("shard_group",),
    ),
    Row(
        name="model-parallelism-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: _model_ranks(case) > 1,
        why=(
            "dsgen does not write tensor, pipeline, context, Ulysses or expert parallelism for FSDP2 yet; leave it out "
            "of want"
        ),
        source="dsgen itself: dsgen/formats/fsdp2 writes no such code",
        library="torch",
        fields=("tensor_parallel", "pipeline_parallel", "context_parallel", "ulysses", "expert_parallel"),
    ),
    Row(
        name="activation-offload-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: case.plan.offload_activations,
        why="dsgen does not write offload of activations for FSDP2 yet; leave offload_activations out",
        source="dsgen itself: dsgen/formats/fsdp2 writes no such code",
        library="torch",
        fields=("offload_activations",),
    ),
    Row(
        name="adapters-on-a-model-of-others-in-fsdp2",
        formats=_ONLY,
        forbidden=lambda case: _is_of_others(case) and case.training.method.type != "full",
        why=(
            "dsgen writes adapters for FSDP2 into its own decoder only, not yet onto a class of transformers or the "
            "model of a factory; leave loaded_by and factory out, or use method: {{type: full}}"
        ),
        source="dsgen itself: dsgen/formats/fsdp2/folder.py",
        library="torch",
    ),
    Row(
        name="optimizer-not-in-torch-optim",
        formats=_ONLY,
        forbidden=lambda case: case.training.optimizer.type.lower() not in _WRITTEN,
        why="dsgen writes torch.optim's AdamW, Adam and SGD for FSDP2; use one of these",
        source="dsgen itself: dsgen/formats/fsdp2/optimizer.py",
        library="torch",
    ),
)
