"""Published measured runs, and how far the ledger is from each: what a plan rests on.

measured.csv is made from a table of measured runs by tests/score/make_measured.py, never edited."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run whose memory was measured and predicted."""

    row_id: str
    """Its id in that table."""
    source: str
    model: str
    parameters: float
    method: str
    """full, lora or qlora."""
    format: str
    """Whose sharding: deepspeed, fsdp2, fsdp1, ddp, megatron."""
    stage: int
    """ZeRO stage."""
    checkpointing: str
    offload: str
    """What is not on the GPU, or none."""
    gpu: str
    gpus: int
    shards: int
    tokens: int
    """Of one micro-batch on one GPU."""
    statistic: str
    """allocated, reserved or whole_gpu."""
    gib: float
    """Measured."""
    error: float
    """Predicted over measured, less one."""


@cache
def measured() -> tuple[Measured, ...]:
    """Every run."""
    return tuple(
        Measured(
            row_id=row["row_id"],
            source=row["source"],
            model=row["model"],
            parameters=float(row["parameters"]),
            method=row["method"],
            format=row["format"],
            stage=int(row["stage"]),
            checkpointing=row["checkpointing"],
            offload=row["offload"],
            gpu=row["gpu"],
            gpus=int(row["gpus"]),
            shards=int(row["shards"]),
            tokens=int(row["tokens"]),
            statistic=row["statistic"],
            gib=float(row["gib"]),
            error=float(row["error"]),
        )
        for row in rows("measured")
    )
