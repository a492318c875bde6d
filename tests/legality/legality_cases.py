"""For every row of the legality table a plan that it forbids, and the nearest one that it does not."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from dsgen.facts.gpus import find_gpu
from dsgen.facts.models import models
from dsgen.hardware import Hardware
from dsgen.legality.values import Case
from dsgen.plan import Buckets, Checkpointing, Plan, Swap, ZeroPP
from dsgen.shapes.from_row import from_row
from dsgen.shapes.resolve import shapes_of
from dsgen.spec.values import Attention, HardwareSpec, Loss, Method, ModelSpec, Optimizer, Scheduler, Spec, Training
from dsgen.target import Target

SHAPES = shapes_of(Spec(file="spec.yaml", model=ModelSpec(name="llama-2-7b"), hardware=HardwareSpec(gpu="t4")))
BUCKETS = Buckets(
    reduce=2**24,
    allgather=2**24,
    prefetch=2**23,
    max_live_parameters=10**9,
    max_reuse_distance=10**9,
    persistence_threshold=40960,
    sub_group_size=2**28,
)
PLAN = Plan(
    world_size=8,
    gpus_per_node=8,
    zero_stage=2,
    precision="bf16",
    checkpointing=Checkpointing("none"),
    micro_batch=2,
    accumulation=4,
    buckets=BUCKETS,
)


def hardware(gpu: str = "a100-80gb-sxm", **known: Any) -> Hardware:
    card = find_gpu(gpu)
    assert card is not None
    base = Hardware(
        gpu=card, gpus_per_node=8, nodes=1, memory_budget=card.memory, budget_reason="all of the card", nvme_path=None
    )
    return replace(base, **known)


def case(
    *,
    gpu: str = "a100-80gb-sxm",
    nvme_path: str | None = "/local_nvme",
    optimizer: str = "adamw",
    method: Literal["full", "lora"] = "full",
    global_batch: int | None = None,
    factory: str | None = None,
    attention: Attention = "sdpa",
    scheduler: Scheduler | None = None,
    quantization: str | None = None,
    loss: Loss = "full",
    freeze: tuple[str, ...] = (),
    format: str = "deepspeed",
    loaded_by: str = "deepspeed",
    versions: Mapping[str, str] | None = None,
    **plan: Any,
) -> Case:
    """A legal case, but for what is named."""
    return Case(
        plan=replace(PLAN, **plan),
        shapes=replace(SHAPES, factory=factory),
        training=Training(
            optimizer=Optimizer(type=optimizer),
            global_batch=global_batch,
            method=Method(type=method if quantization is None else "lora", quantization=quantization),
            loss=loss,
            freeze=freeze,
            attention=attention,
            scheduler=scheduler,
        ),
        hardware=hardware(gpu, nvme_path=nvme_path),
        target=Target(format=format, loaded_by=loaded_by, versions=versions or {}),  # type: ignore[arg-type]
    )


def fsdp2(**named: Any) -> Case:
    """A legal case for FSDP2, but for what is named."""
    return case(**({"format": "fsdp2"} | named))


def trainer(**named: Any) -> Case:
    """A legal case for the Trainer, but for what is named."""
    return case(**({"loaded_by": "transformers"} | named))


HPZ = ZeroPP(secondary_partition=8)
QUANTIZED = ZeroPP(quantized_gradients=True)
ON_CPU = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}

# name of the row -> (forbidden, allowed)
CASES: dict[str, tuple[Case, Case]] = {
    "flash-attention-before-ampere": (
        case(attention="flash", gpu="t4", precision="fp16"),
        case(attention="flash", gpu="mi300x", precision="fp16"),
    ),
    "flash-attention-in-fp32": (
        case(attention="flash", precision="fp32"),
        case(attention="sdpa", precision="fp32"),
    ),
    "falling-schedule-without-an-end": (
        case(scheduler=Scheduler(type="cosine")),
        case(scheduler=Scheduler(type="constant", warmup_steps=5)),
    ),
    "parameter-offload-below-stage-3": (
        case(zero_stage=2, offload_parameters="cpu"),
        case(zero_stage=3, offload_parameters="cpu"),
    ),
    "optimizer-offload-without-zero": (
        case(zero_stage=0, offload_optimizer="cpu"),
        case(zero_stage=1, offload_optimizer="cpu"),
    ),
    "nvme-optimizer-offload-below-stage-3": (
        case(zero_stage=2, offload_optimizer="nvme"),
        case(zero_stage=3, offload_optimizer="nvme"),
    ),
    "nvme-offload-without-path": (
        case(zero_stage=3, offload_optimizer="nvme", nvme_path=None),
        case(zero_stage=3, offload_optimizer="cpu", nvme_path=None),
    ),
    # 32000 x 4096 elements over 8 ranks: 16,384,000 a rank.
    "nvme-parameter-buffer-too-small": (
        case(zero_stage=3, offload_parameters="nvme", swap=Swap(parameter_buffer_size=16_383_999)),
        case(zero_stage=3, offload_parameters="nvme", swap=Swap(parameter_buffer_size=16_384_000)),
    ),
    "activation-offload-not-in-format": (
        case(checkpointing=Checkpointing("full"), offload_activations=True),
        case(checkpointing=Checkpointing("full")),
    ),
    "fp16-before-volta": (case(gpu="p100-16gb", precision="fp16"), case(gpu="v100-16gb-sxm", precision="fp16")),
    "bf16-without-hardware": (case(gpu="v100-16gb-sxm"), case(gpu="a100-80gb-sxm")),
    "gradient-sums-in-another-16-bit-type": (
        case(gradient_precision="fp16"),
        case(precision="fp16", gradient_precision="fp16"),
    ),
    "gradient-sums-in-fp32-at-stage-0": (
        case(zero_stage=0, gradient_precision="fp32"),
        case(zero_stage=0, gradient_precision="fp32", precision="fp32"),
    ),
    "gradient-sums-in-fp32-ignored-at-stage-2": (
        case(gradient_precision="fp32", versions={"deepspeed": "0.19.7"}),
        case(gradient_precision="fp32", versions={"deepspeed": "0.19.8"}),
    ),
    "gradient-sums-in-fp32-ignored-with-muon": (
        case(gradient_precision="fp32", optimizer="muon"),
        case(gradient_precision="fp32", optimizer="muon", zero_stage=3),
    ),
    "odd-allgather-bucket": (
        case(buckets=replace(BUCKETS, allgather=2**24 + 1)),
        case(buckets=replace(BUCKETS, allgather=2**24 + 1), zero_stage=3),
    ),
    "global-batch-not-met": (case(global_batch=128), case(global_batch=64)),
    "ranks-not-divisible": (case(tensor_parallel=3), case(tensor_parallel=1)),
    "pipeline-with-zero-2-or-3": (case(pipeline_parallel=2, zero_stage=2), case(pipeline_parallel=2, zero_stage=1)),
    "model-parallelism-not-written": (case(pipeline_parallel=2, zero_stage=1), case(pipeline_parallel=1, zero_stage=1)),
    "split-model-without-trainer": (case(tensor_parallel=2), trainer(tensor_parallel=2)),
    "tensor-parallel-and-ulysses": (trainer(tensor_parallel=2, ulysses=2), trainer(ulysses=2)),
    # 32 heads, 11008 in between
    "tensor-parallel-that-cuts-heads": (trainer(tensor_parallel=64, world_size=64), trainer(tensor_parallel=8)),
    "tensor-parallel-at-stage-3": (
        trainer(tensor_parallel=2, zero_stage=3, versions={"deepspeed": "0.19.3"}),
        trainer(tensor_parallel=2, zero_stage=3, versions={"deepspeed": "0.19.4"}),
    ),
    "tensor-parallel-of-adapters-or-experts": (trainer(tensor_parallel=2, method="lora"), trainer(tensor_parallel=2)),
    "tensor-parallel-with-offload": (trainer(tensor_parallel=2, offload_optimizer="cpu"), trainer(tensor_parallel=2)),
    "ulysses-that-cuts-heads": (trainer(ulysses=64, world_size=64), trainer(ulysses=8)),
    "ulysses-with-eager-attention": (trainer(ulysses=2, attention="eager"), trainer(ulysses=2, attention="flash")),
    "ulysses-with-sgd": (trainer(ulysses=2, optimizer="sgd"), trainer(ulysses=2, optimizer="sgd", zero_stage=3)),
    "ulysses-before-accelerate-1-12": (
        trainer(ulysses=2, versions={"accelerate": "1.11"}),
        trainer(ulysses=2, versions={"accelerate": "1.12"}),
    ),
    "split-model-before-transformers-5": (
        trainer(ulysses=2, versions={"transformers": "4.57"}),
        trainer(ulysses=2, versions={"transformers": "5.0"}),
    ),
    "zeropp-in-fsdp2": (fsdp2(zeropp=HPZ, zero_stage=3), fsdp2(zero_stage=3)),
    "zeropp-below-stage-3": (case(zeropp=HPZ), case(zeropp=HPZ, zero_stage=3)),
    "secondary-partition-that-does-not-divide-the-ranks": (
        case(zeropp=HPZ, zero_stage=3, world_size=12, gpus_per_node=12),
        case(zeropp=HPZ, zero_stage=3, world_size=16),
    ),
    "secondary-partition-beyond-a-node": (
        case(zeropp=HPZ, zero_stage=3, gpus_per_node=4),
        case(zeropp=HPZ, zero_stage=3),
    ),
    "zeropp-with-parameter-offload": (
        case(zeropp=HPZ, zero_stage=3, offload_parameters="cpu"),
        case(zeropp=HPZ, zero_stage=3, offload_optimizer="cpu"),
    ),
    "zeropp-with-a-split-model": (trainer(zeropp=HPZ, zero_stage=3, ulysses=2), trainer(zeropp=HPZ, zero_stage=3)),
    "quantized-gradients-of-ranks-that-fill-no-nodes": (
        case(zeropp=QUANTIZED, zero_stage=3, world_size=12),
        case(zeropp=QUANTIZED, zero_stage=3, world_size=16),
    ),
    "quantized-traffic-in-fp32": (
        case(zeropp=QUANTIZED, zero_stage=3, precision="fp32"),
        case(zeropp=QUANTIZED, zero_stage=3),
    ),
    "shard-group-in-deepspeed": (case(shard_group=4), case(shard_group=8)),
    "selective-checkpointing-with-trainer": (
        case(loaded_by="transformers", checkpointing=Checkpointing("selective")),
        case(loaded_by="transformers", checkpointing=Checkpointing("full")),
    ),
    "every-nth-checkpointing-with-old-trainer": (
        case(loaded_by="transformers", checkpointing=Checkpointing("every", 2), versions={"transformers": "5.15.0"}),
        case(loaded_by="transformers", checkpointing=Checkpointing("every", 2), versions={"transformers": "5.16.0"}),
    ),
    "checkpointing-more-layers-apart-than-there-are": (
        case(checkpointing=Checkpointing("every", 33)),
        case(checkpointing=Checkpointing("every", 32)),
    ),
    "quantized-weights-at-stage-3": (case(quantization="nf4", zero_stage=3), case(quantization="nf4", zero_stage=2)),
    "quantized-weights-in-fsdp2": (fsdp2(quantization="nf4"), fsdp2(method="lora")),
    "quantized-weights-in-fp32": (
        case(quantization="nf4", precision="fp32"),
        case(quantization="nf4", precision="fp16"),
    ),
    "chunked-loss-of-a-class-of-transformers": (
        case(loss="chunked", loaded_by="transformers"),
        case(loss="fused_linear", loaded_by="transformers"),
    ),
    "vision-tower-in-fsdp2": (replace(fsdp2(), shapes=from_row(models()["gemma-3-4b"])), fsdp2()),
    "frozen-parts-of-a-factorys-model": (
        case(freeze=("embed_tokens",), factory="my.models:build"),
        case(freeze=("embed_tokens",)),
    ),
    "lamb-with-optimizer-offload": (
        case(optimizer="lamb", offload_optimizer="cpu"),
        case(optimizer="lamb"),
    ),
    "one-bit-optimizer-with-zero": (
        case(optimizer="onebitadam", versions={"deepspeed": "0.19.6"}),
        case(optimizer="onebitadam", versions={"deepspeed": "0.19.6"}, zero_stage=0),
    ),
    "one-bit-optimizer-removed": (
        case(optimizer="onebitadam", versions={"deepspeed": "0.19.7"}, zero_stage=0),
        case(optimizer="onebitadam", versions={"deepspeed": "0.19.6"}, zero_stage=0),
    ),
    "muon-at-stage-3": (
        case(optimizer="muon", zero_stage=3, versions={"deepspeed": "0.18.8"}),
        case(optimizer="muon", zero_stage=3, versions={"deepspeed": "0.18.9"}),
    ),
    "fsdp2-before-torch-2-6": (fsdp2(versions={"torch": "2.5.1"}), fsdp2(versions={"torch": "2.6"})),
    "stage-0-in-fsdp2": (fsdp2(zero_stage=0), fsdp2(zero_stage=2)),
    "stage-1-in-fsdp2": (fsdp2(zero_stage=1), fsdp2(zero_stage=3)),
    "nvme-offload-in-fsdp2": (
        fsdp2(offload_optimizer="nvme", offload_parameters="nvme"),
        fsdp2(**ON_CPU),
    ),
    "offload-of-one-without-the-other-in-fsdp2": (fsdp2(offload_optimizer="cpu"), fsdp2(**ON_CPU)),
    "shard-group-that-does-not-divide-the-ranks": (fsdp2(shard_group=3), fsdp2(shard_group=4)),
    "model-parallelism-in-fsdp2": (fsdp2(tensor_parallel=2), fsdp2(tensor_parallel=1)),
    "activation-offload-in-fsdp2": (fsdp2(offload_activations=True), fsdp2(offload_activations=False)),
    "adapters-on-a-model-of-others-in-fsdp2": (
        fsdp2(loaded_by="transformers", method="lora"),
        fsdp2(method="lora"),
    ),
    "factory-and-a-class-of-transformers": (
        fsdp2(loaded_by="transformers", factory="my.models:build"),
        fsdp2(factory="my.models:build"),
    ),
    "factory-in-deepspeed": (case(factory="my.models:build"), case()),
    "optimizer-not-in-torch-optim": (fsdp2(optimizer="lamb"), fsdp2(optimizer="sgd")),
}
