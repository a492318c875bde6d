"""Trials of a folder with FSDP2 code: its own train() runs; only what it is given differs."""

from collections.abc import Iterator

from dsgen.smoke.change import Change
from dsgen.smoke.proof.deepspeed_trials import CLIP_SHARE, SGD
from dsgen.smoke.proof.values import Precision, Trial

MICRO_BATCH = 2
_FP32 = Change(
    key="mp_policy",
    before="bf16 or fp16",
    after="param_dtype fp32, reduce_dtype fp32",
    why="equality is proven in fp32, where rounding hides nothing",
)
_SGD = (
    Change(key="optimizer", before=None, after=SGD, why="SGD: Adam hides a gradient that is wrong by a factor"),
    Change(
        key="CLIPPING",
        before=None,
        after="0.3 x the first norm",
        why="0.3 x the norm of the first gradient, so that every step clips",
    ),
)
_RATE = Change(
    key="rate_at",
    before=None,
    after=1.0,
    why="the learning rate stays where it is, so that every step moves the weights",
)


def fsdp2_trials(precision: str, accumulation: int) -> Iterator[Trial]:
    """``precision`` as the folder's sharding.py has it; its optimizer and threshold are seen as it trains."""
    mixed = (_FP32,) if precision != "fp32" else ()
    yield _trial("configured optimizer, fp32", "fp32", accumulation, (*mixed, _RATE), sgd=False)
    yield _trial("clipped SGD, fp32", "fp32", max(2, accumulation), (*mixed, _RATE, *_SGD), sgd=True)
    if precision == "bf16":
        yield _trial("configured optimizer, bf16", "bf16", accumulation, (_RATE,), sgd=False)


def _trial(name: str, precision: Precision, accumulation: int, changes: tuple[Change, ...], *, sgd: bool) -> Trial:
    return Trial(
        name=name,
        subject="fsdp2",
        precision=precision,
        sums="fp32",  # reduce_dtype, in which FSDP2 also accumulates
        tolerance=precision,
        optimizer={**SGD, "dummy_step": False} if sgd else None,
        clip={"share": CLIP_SHARE} if sgd else "own",
        micro_batch=MICRO_BATCH,
        accumulation=accumulation,
        layout={"format": "fsdp2"},
        uneven=True,
        content={"optimizer": SGD if sgd else None},
        changes=changes,
    )
