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
SUMS_ON_RANKS = Trait(
    name="sums in bf16",
    text="micro-batches are added up in bf16 on each rank, then over the ranks; so does the plain loop",
    source="deepspeed/runtime/engine.py:allreduce_gradients",
)
SUMS_EACH_STEP = Trait(
    name="sums in bf16 after each micro-step",
    text="gradients are averaged over the ranks in every micro-step, and these averages added up in bf16; so does the "
    "plain loop",
    source="deepspeed/runtime/engine.py:allreduce_gradients",
)
SUMS_ELSEWHERE = Trait(
    name="sums of its own",
    text="gradients are added up in types or an order that the plain loop does not follow: compared loosely",
    source="deepspeed/runtime/engine.py:allreduce_gradients",
)

_ADAM = ("Adam", "AdamW")


def deepspeed_traits(*, stage: int, precision: Precision, optimizer: str, sums_known: bool) -> Iterator[Trait]:
    """Traits of DeepSpeed in a trial; ``sums_known``: types and order of the sums are those of DeepSpeed by default."""
    if stage == 0 and precision == "fp32":
        yield NO_NORM
    if precision == "fp32":
        return
    if stage == 0 and optimizer in _ADAM:
        yield DUMMY_STEP
    if not sums_known:
        yield SUMS_ELSEWHERE
    else:
        yield SUMS_ON_RANKS if stage < 2 else SUMS_EACH_STEP


def sums_of(traits: tuple[Trait, ...]) -> Sums:
    """Where the plain loop has to add up, to do as the framework does."""
    if SUMS_ON_RANKS in traits:
        return "bf16 on ranks"
    return "bf16 each step" if SUMS_EACH_STEP in traits else "fp32"
