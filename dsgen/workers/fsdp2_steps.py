"""Trains a folder with FSDP2 code for a few steps, as it is written."""

import time
from pathlib import Path
from typing import Any

from dsgen.workers import peak
from dsgen.workers.fsdp2_folder import Folder
from dsgen.workers.rank import Json, Rank
from dsgen.workers.report import movement, number


def run(rank: Rank, job: Json) -> dict[str, Any]:
    """Writes ``phase``, ``engine`` and ``step`` events; returns what belongs to the end."""
    torch, events = rank.torch, rank.events
    start = time.monotonic()
    peak.reset(torch, rank.device)
    folder = Folder(rank, job["folder"])
    before: dict[str, Any] = {}
    folder.before_first_step = lambda: before.update(folder.weights())
    folder.train.MICRO_BATCH, folder.train.ACCUMULATION = job["micro_batch"], job["accumulation"]
    folder.run(job["steps"], job["seed"], Path(job["folder"]) / "checkpoints")
    events.enter("read the weights")
    after, seen = folder.weights(), folder.seen
    means = torch.stack(seen.losses)
    torch.distributed.all_reduce(means)
    sharded = sum(unit["elements"] for unit in seen.units)
    events.write("engine", zero_stage=3 if any(unit["reshard"] for unit in seen.units) else 2, partitioned=sharded)
    for index, loss in enumerate(means.cpu()):
        events.write(
            "step",
            step=index + 1,
            loss=number(loss),
            gradient_norm=number(seen.norms[index]),
            learning_rate=number(seen.rates[index]),
            seconds=seen.seconds[index],
        )
    return {
        "seconds": time.monotonic() - start,
        "parameters": sum(tensor.numel() for tensor in before.values()),
        "skipped_steps": 0,
        "windows": seen.windows,
        **movement(torch, before, after),
        **peak.measure(torch, rank.device),
    }
