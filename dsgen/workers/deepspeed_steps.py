"""Trains one DeepSpeed config for a few steps with the real DeepSpeed."""

import time
from collections.abc import Iterable
from typing import Any

from dsgen.workers import peak
from dsgen.workers.batches import batch
from dsgen.workers.deepspeed_engine import decoder, engine_of, weights_of
from dsgen.workers.rank import Json, Rank
from dsgen.workers.report import movement, number


def run(rank: Rank, job: Json) -> dict[str, Any]:
    """Writes ``phase``, ``engine`` and ``step`` events; returns what belongs to the end."""
    torch, events = rank.torch, rank.events
    start = time.monotonic()
    peak.reset(torch, rank.device)
    events.enter("build the model")
    sizes, model = decoder(rank, job)
    events.enter("deepspeed.initialize")
    engine = engine_of(rank, job, model, job["config"])
    events.enter("read the weights")
    before = weights_of(rank, engine)
    events.write(
        "engine", zero_stage=int(engine.zero_optimization_stage()), partitioned=_partitioned(engine.module.parameters())
    )
    for step in range(1, job["steps"] + 1):
        _train_step(rank, engine, sizes, job, step)

    events.enter("read the weights")
    after = weights_of(rank, engine)
    result = {
        "seconds": time.monotonic() - start,
        "parameters": sum(tensor.numel() for tensor in before.values()),
        "skipped_steps": int(engine.skipped_steps),
        **movement(torch, before, after),
        **peak.measure(torch, rank.device),
    }
    events.enter("engine.destroy")
    engine.destroy()
    return result


def _train_step(rank: Rank, engine: Any, sizes: Any, job: Json, step: int) -> None:
    torch, events = rank.torch, rank.events
    start = time.monotonic()
    accumulation = int(engine.gradient_accumulation_steps())
    rate = engine.get_lr()
    losses = []
    for micro_step in range(accumulation):
        tokens = batch(torch, sizes, int(engine.train_micro_batch_size_per_gpu()), rank.rank, micro_step, job["seed"])
        tokens = tokens.to(rank.torch_device)
        events.enter("forward", step)
        loss = engine(tokens, tokens)
        events.enter("backward", step)
        engine.backward(loss)
        events.enter("optimizer step", step)
        engine.step()
        losses.append(loss.detach().float())
    events.enter("average the loss", step)
    mean = torch.stack(losses).mean()
    torch.distributed.all_reduce(mean)
    norm = engine.get_global_grad_norm()
    events.write(
        "step",
        step=step,
        loss=number(mean / rank.world_size),
        gradient_norm=None if norm is None else number(norm),
        learning_rate=number(rate[0]) if rate else None,
        seconds=time.monotonic() - start,
    )


def _partitioned(parameters: Iterable[Any]) -> int:
    """Elements that stage 3 keeps in shards between their uses; persistent ones stay whole on every rank."""
    return sum(p.ds_numel for p in parameters if hasattr(p, "ds_id") and not p.ds_persist)
