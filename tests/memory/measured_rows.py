"""Turns rows of the published measurements into settings of the ledger, as far as its first cut covers them.

Covered: one GPU with full or LoRA fine-tuning, DeepSpeed ZeRO-3 with fp32 states, FSDP full shard of all
weights without accumulation; eager (not compiled) decoders in 16 bit; figures of
torch.cuda.max_memory_allocated. What a framework keeps of states stands here, because dsgen.memory describes
DeepSpeed only so far; activations, logits and the moments are dsgen's. Nothing is fitted to a row.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from dsgen.facts.gpus import find_gpu
from dsgen.hardware import Hardware
from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.framework import workspace
from dsgen.memory.logits import around_the_blocks, logits
from dsgen.memory.moments import moments
from dsgen.memory.setting import Setting, setting_of
from dsgen.plan import Buckets, Checkpointing, Plan
from dsgen.shapes.lora import with_method
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Shapes
from dsgen.spec.values import Attention, Loss, Method, Optimizer, Training
from dsgen.target import Target

GIB = 2**30
_ATTENTION: dict[str, Attention] = {
    "flash2": "flash",
    "sdpa": "sdpa",
    "sdpa_flash": "flash",
    "eager": "eager",
    "nn.MultiheadAttention(sdpa/eager)": "sdpa",
}
_LOSS: dict[str, Loss] = {
    "full_ce": "full",
    "full_ce(fp32)": "full",
    "fused_linear_ce(liger)": "fused_linear",
    "chunked_ce(128 lm_head)": "chunked",
    "chunked_ce": "chunked",
}
# torchtitan's selective_op recomputes every second matrix product; ours none.
_CHECKPOINTING = {"full": "full", "full(reentrant)": "full", "none": "none"}
# transformers took the loss of these in 16 bit before 4.46 (modeling_gpt2.py, modeling_gpt_bigcode.py).
_LOSS_IN_16_BIT = {"GPT2-XL", "GPT2-12B(Colossal)", "santacoder(gpt_bigcode)"}
_TARGETS = {
    "qkvo": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "query+value": ("q_proj", "v_proj"),
    "qkv+mlp": ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "down_proj"),
}


@dataclass(frozen=True)
class Row:
    row_id: str
    source: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def covered(path: Path) -> Iterator[Row]:
    """The rows that can be predicted, predicted."""
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            predicted = _predict(row)
            if predicted is not None:
                yield Row(row["row_id"], row["source_id"], float(row["peak_alloc_gib"]), predicted / GIB)


def _predict(row: dict[str, str]) -> float | None:
    known = (
        row["peak_alloc_gib"]
        and row["quant"] == "none"
        and row["kind"] in ("pretrain", "full_ft", "lora")
        and (row["tp"], row["pp"], row["compile"]) == ("1", "1", "no")
        and row["loss_impl"] in _LOSS
        and row["attention"] in _ATTENTION
        and row["act_ckpt"] in _CHECKPOINTING
        and row["model"] not in _LOSS_IN_16_BIT
        and row["optim_state_dtype"] != "bf16" * (row["sharding"] == "zero3")
    )
    method = _method(row["peft"])
    if not known or method is None:
        return None
    setting = _setting(row, method)
    if row["sharding"] == "zero3":
        return max(moment.total for moment in moments(setting)) + workspace()
    if row["sharding"] == "none":
        return _one_gpu(setting) + workspace()
    if row["sharding"].startswith("fsdp") and row["kind"] != "lora" and row["grad_accum"] == "1":
        return _fsdp(setting, row["master_dtype"] == "fp32") + workspace()
    return None


def _method(peft: str) -> Method | None:
    if peft == "none":
        return Method()
    kind, *words = peft.split(" ")
    if kind != "lora" or len(words) != 2 or words[1] not in _TARGETS:
        return None
    return Method(type="lora", rank=int(words[0].removeprefix("r")), targets=_TARGETS[words[1]])


def _setting(row: dict[str, str], method: Method) -> Setting:
    world = int(row["n_gpus"])
    shapes = with_method(_shapes(row), method)
    plan = Plan(
        world_size=world,
        gpus_per_node=min(8, world),
        zero_stage=3 if row["sharding"] == "zero3" else 0,
        precision="fp16" if row["compute_dtype"] == "fp16" else "bf16",
        checkpointing=Checkpointing(_CHECKPOINTING[row["act_ckpt"]]),  # type: ignore[arg-type]
        micro_batch=int(row["micro_batch"]),
        accumulation=int(row["grad_accum"]),
        buckets=_buckets(row),
    )
    if method.type == "lora" and row["source_id"].startswith("litgpt"):
        method = replace(method, dropout=0.05)  # finetune/lora.py and the configs of config_hub
    training = Training(
        method=method,
        attention=_ATTENTION[row["attention"]],
        loss=_LOSS[row["loss_impl"]],
        optimizer=Optimizer(type="adamw"),
    )
    gpu = find_gpu("a100-80gb-sxm")
    assert gpu is not None
    hardware = Hardware(gpu=gpu, gpus_per_node=8, nodes=1, memory_budget=gpu.memory, budget_reason="the card")
    return setting_of(plan, shapes, training, int(row["seq_len"]), hardware, Target())


def _buckets(row: dict[str, str]) -> Buckets:
    # DeepSpeedExamples says 5e7; Lightning's DeepSpeedStrategy 2e8, 2e8 and DeepSpeed's defaults for the rest.
    reduce = 50_000_000 if row["source_id"] == "deepspeed-bf16" else 200_000_000
    return Buckets(
        reduce=reduce,
        allgather=reduce,
        prefetch=50_000_000,
        max_live_parameters=10**9,
        max_reuse_distance=10**9,
        persistence_threshold=100_000,
        sub_group_size=10**9,
    )


def _shapes(row: dict[str, str]) -> Shapes:
    gpt = row["mlp"] == "gelu"
    return build(
        row["model"],
        Architecture(
            family="gpt2" if "dropout 0.1" in row["notes"] else "llama",
            hf_architecture="",
            layer_class="",
            layers=int(row["layers"]),
            hidden=int(row["hidden"]),
            heads=int(row["heads"]),
            kv_heads=int(row["kv_heads"]),
            head_dim=int(row["hidden"]) // int(row["heads"]),
            intermediate=int(row["intermediate"]),
            vocab=int(row["vocab"]),
            tied=row["tied_emb"] == "yes",
            mlp=row["mlp"],
            norm="layernorm" if gpt else "rmsnorm",
            attention_bias="all" if gpt else "none",
            mlp_bias=gpt,
        ),
    )


def _backward(setting: Setting, gradient_bytes: float, gathered: int) -> float:
    """Activations, logits and gradients at the worst point of the backward pass, plus what is gathered."""
    layers = activations(setting)
    before = sum(layer.kept for layer in layers) + around_the_blocks(setting)
    resident = gradient_bytes * setting.trainable if setting.plan.accumulation > 1 else 0
    loss = logits(setting)
    worst = float(before + max(loss.forward, loss.backward)) + resident
    computed = sum(tensor.numel for tensor in setting.shapes.outside if tensor.trainable)
    for layer, block in zip(reversed(layers), reversed(setting.shapes.blocks), strict=True):
        computed += block.trainable
        gradients = max(resident, gradient_bytes * computed)
        worst = max(worst, before + layer.extra + gradients)
        before -= layer.kept
    return worst + gathered


def _one_gpu(setting: Setting) -> float:
    """Pure 16-bit AdamW of torch, foreach: weights 2, states 4, gradients 2, one temporary 2 bytes."""
    states = 2 * setting.parameters + 4 * setting.trainable
    return states + max(_backward(setting, 2, 0), 4 * setting.trainable)


def _fsdp(setting: Setting, fp32_master: bool) -> float:
    """FSDP full shard: weights, gradients and two states in one type, sharded; foreach temporary of that type.

    Gathered in the compute type: two layers, and the root unit with embedding and head; the gradient of one layer
    before it is scattered. Not covered: accumulation (no_sync keeps gradients whole) and frozen weights.
    """
    n, width = setting.plan.world_size, 4 if fp32_master else 2
    root = sum(tensor.numel for tensor in setting.shapes.outside)
    gathered = 2 * (3 * setting.shapes.largest_block + root)
    shard = ceil(setting.trainable / n)
    states = width * ceil(setting.parameters / n) + 2 * width * shard
    return states + max(_backward(setting, width / n, gathered), 2 * width * shard)
