"""DeepSpeed under trial: its engine does the accumulation, the reduction, the clipping and the step."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsgen.workers.collectives import Collectives
from dsgen.workers.deepspeed_engine import decoder, engine_of, weights_of
from dsgen.workers.rank import Rank
from dsgen.workers.subject import Observed, comparable

if TYPE_CHECKING:
    from dsgen.workers.trial import Trial


def observe(rank: Rank, trial: "Trial") -> Observed:
    """Trains with the config of the job, which the trial has set to clip at its own threshold."""
    job, events, torch = trial.job, rank.events, rank.torch
    events.enter("build the model")
    sizes, model = _decoder(rank, trial)
    config = json.loads(Path(job["config"]).read_text("utf-8"))
    clip = trial.start(sizes, lambda: _decoder(rank, trial)[1], dict(model.named_parameters()))
    config["gradient_clipping"] = 0.0 if clip is None else clip
    events.enter("deepspeed.initialize")
    engine = engine_of(rank, job, model, config)
    layout = {
        "stage": int(engine.zero_optimization_stage()),
        "elements": sum(value.numel() for value in trial.weights.values()),
    }

    losses: list[Any] = []
    norms: list[float | None] = []
    collectives = Collectives(torch)
    with collectives.counting():
        for step in range(job["steps"]):
            collectives.next_step()
            total = torch.zeros((), device=rank.torch_device)
            for tokens, _ in trial.micro_batches(step):
                events.enter("forward", step + 1)
                loss = engine(tokens, tokens)
                events.enter("backward", step + 1)
                engine.backward(loss)
                events.enter("optimizer step", step + 1)
                engine.step()
                total += loss.detach().float() / job["accumulation"]
            losses.append(total)
            norm = engine.get_global_grad_norm()
            norms.append(None if norm is None else float(norm))
    events.enter("average the losses")
    means = torch.stack(losses)
    torch.distributed.all_reduce(means)
    events.enter("read the weights")
    after = weights_of(rank, engine)
    engine.destroy()
    return Observed([float(x) for x in means / rank.world_size], norms, after, {}, collectives.steps, layout)


def _decoder(rank: Rank, trial: "Trial") -> tuple[Any, Any]:
    sizes, model = decoder(rank, trial.job)
    return sizes, comparable(rank.torch, model)
