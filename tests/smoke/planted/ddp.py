"""A DDP loop as people write it, right or with one mistake; a subject of dsgen.workers.trial."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from dsgen.workers.batches import IGNORE_INDEX
from dsgen.workers.collectives import Collectives
from dsgen.workers.modules import load_file
from dsgen.workers.subject import Observed, comparable, made


def loss_of(torch: Any, model: Any, tokens: Any, targets: Any) -> Any:
    """The mean over the targets of a micro-batch."""
    logits = model(tokens).float().flatten(0, -2)
    return torch.nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=IGNORE_INDEX)


def observe(rank: Any, trial: Any) -> Observed:
    job, torch = trial.job, rank.torch
    mistake, accumulation = job["mistake"], job["accumulation"]
    module = load_file(job["model"])
    sizes = module.Config.tiny()

    def make() -> Any:
        torch.manual_seed(job["seed"])
        return comparable(torch, module.Decoder(sizes))

    plain = make()
    clip = trial.start(sizes, make, dict(plain.named_parameters()))
    if mistake == "init differs":
        torch.manual_seed(job["seed"] + 1000 * rank.rank)
        plain = comparable(torch, module.Decoder(sizes))
    model = torch.nn.parallel.DistributedDataParallel(plain)
    optimizer = getattr(torch.optim, job["reference"]["type"])(model.parameters(), **job["reference"]["params"])
    seen: dict[str, Any] = {"norms": [], "losses": []}

    def update() -> None:
        limit = float("inf") if mistake == "not clipped" or clip is None else clip
        seen["norms"].append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), limit)))
        optimizer.step()
        optimizer.zero_grad()

    collectives = Collectives(torch)
    with collectives.counting():
        for step in range(job["steps"]):
            collectives.next_step()
            total = torch.zeros(())
            for index, (tokens, targets) in enumerate(micro_batches(trial, step, mistake)):
                number = step * accumulation + index
                last = index == accumulation - 1
                sync = {"sync on the first": index == 0, "no no_sync": True}.get(mistake, last)
                with nullcontext() if sync else model.no_sync():
                    loss = loss_of(torch, model, tokens, targets)
                    (loss if mistake == "not divided" else loss / accumulation).backward()
                total += loss.detach() / accumulation
                if number % accumulation == 0 if mistake == "gate off by one" else last:
                    update()
            seen["losses"].append(total)
    means = torch.stack(seen["losses"])
    torch.distributed.all_reduce(means)
    after = {name: p.detach().clone() for name, p in plain.named_parameters()}
    layout = {"buckets": 1}
    losses = [float(mean) / rank.world_size for mean in means]
    return Observed(losses, seen["norms"], after, made(optimizer), collectives.steps, layout)


def micro_batches(trial: Any, step: int, mistake: str) -> Iterator[Any]:
    return iter(trial.micro_batches(step, 0 if mistake == "same data" else None))
