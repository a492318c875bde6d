"""A loop around DeepSpeed's engine with one mistake; a subject of dsgen.workers.trial."""

from typing import Any

from dsgen.workers import deepspeed_subject
from dsgen.workers.subject import Observed


def observe(rank: Any, trial: Any) -> Observed:
    mistake, accumulation = trial.job["mistake"], trial.job["accumulation"]
    right = deepspeed_subject.engine_of

    def engine_of(*given: Any) -> Any:
        engine = right(*given)
        backward, step = engine.backward, engine.step
        if mistake == "divided twice":
            engine.backward = lambda loss: backward(loss / accumulation)
        elif mistake == "not divided":
            engine.backward = lambda loss: backward(loss, scale_wrt_gas=False)
        elif mistake == "step gated by hand":
            calls = iter(range(10**6))
            engine.step = lambda: step() if next(calls) % accumulation == accumulation - 1 else None
        return engine

    own = trial.micro_batches
    if mistake == "same data":
        trial.micro_batches = lambda step, number=None: own(step, 0 if number is None else number)
    deepspeed_subject.engine_of = engine_of
    try:
        return deepspeed_subject.observe(rank, trial)
    finally:
        deepspeed_subject.engine_of = right
