"""What frameworks do otherwise than a plain loop does: known, allowed for, and named in the report.

Each row was found by running the framework beside a plain loop, and read at its source (deepspeed 0.19.8).
"""

from collections.abc import Iterator

from dsgen.smoke.proof.values import Precision, Sums, Trait

DUMMY_STEP = Trait(
    name="dummy step",
    text="without ZeRO, DeepSpeed's bf16 optimizer takes one step with zero gradients when it is made: Adam's bias "
    "correction is one step ahead and weight decay acts once more, 15 % of the movement in the first steps; the plain "
    "loop takes that step too",
    source="deepspeed/runtime/fp16/unfused_optimizer.py:initialize_optimizer_states",
)
NO_NORM = Trait(
    name="no gradient norm",
    text="in fp32 without ZeRO, DeepSpeed keeps no gradient norm; the weights after clipped SGD stand for it",
    source="deepspeed/runtime/engine.py:_take_model_step",
)
_REDUCE = "deepspeed/runtime/engine.py:allreduce_gradients"


def _sums(sums: Sums, text: str) -> Trait:
    return Trait(name=f"sums: {sums}", text=f"{text}; so does the plain loop", source=_REDUCE)


SUMS: dict[Sums, Trait] = {
    "bf16 on ranks": _sums(
        "bf16 on ranks", "the gradients of micro-batches are added up in bf16 on each rank, then over the ranks"
    ),
    "fp32 on ranks": _sums(
        "fp32 on ranks",
        "the gradients of micro-batches are added up in fp32 on each rank, then rounded and added up over the ranks in "
        "bf16",
    ),
    "bf16 each step": _sums(
        "bf16 each step",
        "gradients are averaged over the ranks in bf16 in every micro-step, and these averages added up in bf16",
    ),
    "fp32 each step": _sums(
        "fp32 each step",
        "gradients are averaged over the ranks in bf16 in every micro-step, and these averages added up in fp32",
    ),
}
SUMS_ELSEWHERE = Trait(
    name="sums of its own",
    text="gradients are added up in types or an order that the plain loop does not follow: compared loosely",
    source="deepspeed/runtime/engine.py:allreduce_gradients",
)

_ADAM = ("Adam", "AdamW")
_REDUCES_EACH_STEP = 2  # ZeRO stage from which gradients are partitioned


def deepspeed_traits(
    *, stage: int, precision: Precision, optimizer: str, accumulate_in: str | None, sums_known: bool
) -> Iterator[Trait]:
    """Traits of DeepSpeed in a trial.

    ``accumulate_in``: data_types.grad_accum_dtype; ``sums_known``: whatever else changes types and order of the sums
    is as DeepSpeed has it by default.
    """
    if stage == 0 and precision == "fp32":
        yield NO_NORM
    if precision == "fp32":
        return
    if stage == 0 and optimizer in _ADAM:
        yield DUMMY_STEP
    # By default gradients are added up in the type that they have (deepspeed/runtime/engine.py, get_data_types).
    kind = {None: "bf16", "bf16": "bf16", "bfloat16": "bf16", "fp32": "fp32", "float32": "fp32"}.get(accumulate_in)
    where = "on ranks" if stage < _REDUCES_EACH_STEP else "each step"
    found = next((sums for sums in SUMS if sums == f"{kind} {where}"), None)
    yield SUMS[found] if found is not None and sums_known else SUMS_ELSEWHERE


def sums_of(traits: tuple[Trait, ...]) -> Sums:
    """Where the plain loop has to add up, to do as the framework does."""
    return next((sums for sums, trait in SUMS.items() if trait in traits), "fp32")
