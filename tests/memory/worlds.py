"""Small worlds for the ledger's tests: models, plans and machines with everything stated."""

from dataclasses import replace
from typing import Any

from architectures import GPT_2_XL, LLAMA_2_7B

from dsgen.facts.gpus import find_gpu
from dsgen.hardware import Hardware
from dsgen.memory.account import account
from dsgen.memory.ledger import Ledger
from dsgen.memory.setting import Setting, setting_of
from dsgen.plan import Buckets, Checkpointing, Plan
from dsgen.shapes.lora import with_method
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Block, Shapes, Tensor
from dsgen.spec.values import Training
from dsgen.target import Target

GIB = 2**30

LLAMA_3_8B = replace(LLAMA_2_7B, family="llama-3", kv_heads=8, intermediate=14336, vocab=128256)
# Case BR-045: 36 layers, hidden 4096, 32 heads, vocabulary 32000, about 7.4e9 parameters.
GPT_7B = replace(GPT_2_XL, layers=36, hidden=4096, heads=32, kv_heads=32, head_dim=128, intermediate=16384, vocab=32000)

BUCKETS = Buckets(
    reduce=50_000_000,
    allgather=50_000_000,
    prefetch=15_000_000,
    max_live_parameters=300_000_000,
    max_reuse_distance=300_000_000,
    persistence_threshold=40_960,
    sub_group_size=10**12,
)


def plan(**changes: Any) -> Plan:
    """Eight GPUs, ZeRO-3, bf16, full checkpointing, one sequence; with ``changes``."""
    base: dict[str, Any] = {
        "world_size": 8,
        "gpus_per_node": 8,
        "zero_stage": 3,
        "precision": "bf16",
        "checkpointing": Checkpointing("full"),
        "micro_batch": 1,
        "accumulation": 1,
        "buckets": BUCKETS,
    }
    return Plan(**(base | changes))


def hardware(**changes: Any) -> Hardware:
    gpu = find_gpu("a100-80gb-sxm")
    assert gpu is not None
    base: dict[str, Any] = {
        "gpu": gpu,
        "gpus_per_node": 8,
        "nodes": 1,
        "memory_budget": 76 * GIB,
        "budget_reason": "a test",
    }
    return Hardware(**(base | changes))


def shapes_of(arch: Architecture, training: Training | None = None) -> Shapes:
    return with_method(build(arch.family, arch), (training or Training()).method)


def setting(arch: Architecture, training: Training | None = None, *, s: int = 2048, **changes: Any) -> Setting:
    training = training or Training(attention="flash")
    return setting_of(plan(**changes), shapes_of(arch, training), training, s, hardware(), Target())


def ledger(arch: Architecture, training: Training | None = None, *, s: int = 2048, **changes: Any) -> Ledger:
    training = training or Training(attention="flash")
    return account(plan(**changes), shapes_of(arch, training), training, s, hardware(), Target())


def flat(elements: int, trainable: bool = True, **stated: Any) -> Shapes:
    """A model of exactly so many parameters in one tensor of one block."""
    block = Block((Tensor("w", (elements,), trainable),))
    return Shapes("flat", replace(LLAMA_2_7B, layers=1), (block,), (), **stated)
