"""FSDP2 as people write it by hand, right or with one mistake; a subject of dsgen.workers.trial."""

from typing import Any

from dsgen.workers.collectives import Collectives
from dsgen.workers.fsdp2_folder import full
from dsgen.workers.modules import load_file
from dsgen.workers.subject import Observed, comparable, made


def observe(rank: Any, trial: Any) -> Observed:
    job, torch = trial.job, rank.torch
    from torch.distributed.fsdp import fully_shard

    ddp = load_file(__file__.replace("fsdp2.py", "ddp.py"), "planted_ddp")
    mistake, accumulation = job["mistake"], job["accumulation"]
    module = load_file(job["model"])
    sizes = module.Config.tiny()

    def make(seed: int = job["seed"]) -> Any:
        torch.manual_seed(seed)
        return comparable(torch, module.Decoder(sizes))

    clip = trial.start(sizes, make, dict(make().named_parameters()))
    model = make(job["seed"] + 1000 * rank.rank) if mistake == "init differs" else make()
    early = list(model.parameters())
    for block in model.layers:
        fully_shard(block)
    fully_shard(model, reshard_after_forward=False)
    trained = early if mistake == "optimizer before sharding" else model.parameters()
    optimizer = getattr(torch.optim, job["reference"]["type"])(trained, **job["reference"]["params"])
    losses, norms = [], []
    collectives = Collectives(torch)
    with collectives.counting():
        for step in range(job["steps"]):
            collectives.next_step()
            total = torch.zeros(())
            for index, (tokens, targets) in enumerate(trial.micro_batches(step)):
                model.set_requires_gradient_sync(index == accumulation - 1)
                loss = ddp.loss_of(torch, model, tokens, targets) / accumulation
                loss.backward()
                total += loss.detach()
            if mistake == "clip on a shard":
                norms.append(float(clip_local(torch, model, clip)))
            else:
                norms.append(float(full(torch.nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf")))))
            optimizer.step()
            model.zero_grad()
            losses.append(total)
    means = torch.stack(losses)
    torch.distributed.all_reduce(means)
    after = {name: full(p).detach().clone() for name, p in model.named_parameters()}
    units = [{"reshard": True, "trained": True}] * len(model.layers) + [{"reshard": False, "trained": True}]
    layout = {"units": units, "replicated": False, "reduce_each": False}
    means = [float(mean) / rank.world_size for mean in means]
    return Observed(means, norms, after, made(optimizer), collectives.steps, layout)


def clip_local(torch: Any, model: Any, clip: float) -> Any:
    """What clip_grad_norm_ of plain tensors does to one rank's shards: every rank by a norm of its own."""
    shards = [p.grad.to_local() for p in model.parameters()]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(shard) for shard in shards]))
    for shard in shards:
        shard.mul_(torch.clamp(clip / (norm + 1e-6), max=1.0))
    return norm
