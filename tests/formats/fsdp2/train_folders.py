"""Trains generated folders in one process group, and beside each the same model in a plain loop on rank 0.

Started by torchrun with a file of jobs, a JSON list; rank 0 writes beside it what was seen of each, by name. The plain
loop is written from what the folder promises, not from its code: torch's sampler order, the mean over all targets of a
step, clipping by the norm of the whole gradient, one scheduler step for each optimizer step.
"""

import argparse
import importlib
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.nn.functional import cross_entropy, pad
from torch.utils._python_dispatch import TorchDispatchMode

MODULES = ("train", "loader", "weights", "checkpoint", "sharding", "model", "data", "pretrained")
LENGTH = 32
IGNORE = -100


class Collectives(TorchDispatchMode):
    """Counts what the ranks say to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            self.seen[func.__name__.split(".")[0].strip("_")] += 1
        return func(*args, **(kwargs or {}))


def mask(targets: torch.Tensor) -> torch.Tensor:
    """Leaves out some targets: more in one sequence than in another."""
    return targets.masked_fill((targets % 7 == 0) | (targets < 40 * (targets[:, :1] % 3)), IGNORE)


def load(folder: str) -> Any:
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("train")
    finally:
        sys.path.remove(folder)


def options(job: dict[str, Any], **changes: Any) -> argparse.Namespace:
    given = {
        "size": "tiny",
        "steps": job["steps"],
        "model": None,
        "weights": job["weights"] and Path(job["weights"]),
        "data": Path(job["data"]),
        "output": Path(job["folder"]) / "checkpoints",
        "resume": False,
        "save_every": 10**6,
        "keep": 2,
        "log_every": 1,
        "seed": 5,
    }
    return argparse.Namespace(**(given | changes))


def trained(module: Any, chosen: argparse.Namespace) -> dict[str, Any]:
    """What the last checkpoint holds."""
    windows = sys.modules["loader"].windows
    # Starting data workers for every epoch takes longer than the training; the launcher's test has them.
    with patch.object(module, "windows", lambda *given, **named: windows(*given, **(named | {"num_workers": 0}))):
        module.train(chosen, torch.device("cpu"))
    file = chosen.output.parent / f"{chosen.output.name}.pt"
    if dist.get_rank() == 0:
        dcp_to_torch_save(chosen.output / f"step-{chosen.steps:08d}", file)
    dist.barrier()
    return torch.load(file, weights_only=False)["training"]  # type: ignore[no-any-return]


# Numbers that change no shape and are no class's default.
PUBLISHED = {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}, "rms_norm_eps": 3e-6}


def publish(module: Any, folder: str) -> None:
    """A checkpoint of Hugging Face's class."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tiny = asdict(module.Config.tiny())
    sizes = {key: value for key, value in tiny.items() if not key.startswith(("rope", "rotary", "norm"))}
    torch.manual_seed(9)
    LlamaForCausalLM(LlamaConfig(**sizes, **PUBLISHED)).save_pretrained(folder)


def read_whole(module: Any, folder: str) -> Any:
    """The decoder with that checkpoint's tensors and numbers."""
    from safetensors.torch import load_file

    model = module.Decoder(replace(module.Config.tiny(), rope_theta=500000.0, norm_eps=3e-6))
    tensors = load_file(Path(folder) / "model.safetensors")
    model.load_state_dict({name.removeprefix("model."): tensor for name, tensor in tensors.items()})
    return model


def first_values(module: Any, seed: int, weights: str | None = None) -> Any:
    """The model as one process would fill it."""
    if weights:
        return read_whole(module, weights)
    if not hasattr(module, "Decoder"):
        torch.manual_seed(seed)
        return module.build(module.configuration(None, True)) if hasattr(module, "configuration") else module.build()
    model = module.Decoder(module.Config.tiny())
    for each in model.modules():
        if list(each.parameters(recurse=False)):
            torch.manual_seed(seed)
            seed += 1
            each.reset_parameters()
    return model


def steps_of(job: dict[str, Any], module: Any) -> Iterator[list[tuple[torch.Tensor, torch.Tensor]]]:
    """Every micro-batch of all ranks, an optimizer step at a time."""
    ids = torch.from_numpy(np.fromfile(job["data"], dtype=np.uint16).astype(np.int64)).view(-1, LENGTH)
    world, epoch = dist.get_world_size(), 0
    size, accumulation = module.MICRO_BATCH, module.ACCUMULATION
    while True:
        generator = torch.Generator().manual_seed(5 + epoch)
        order = torch.randperm(len(ids), generator=generator)[: len(ids) // world * world]
        ranks = [order[rank::world].split(size) for rank in range(world)]
        for first in range(0, len(ranks[0]), accumulation):
            taken = [ids[part] for rank in ranks for part in rank[first : first + accumulation]]
            targets = [pad(part, (0, 1), value=IGNORE)[:, 1:] for part in taken]
            yield list(zip(taken, [mask(t) if job["masked"] else t for t in targets], strict=True))
        epoch += 1


def rate(step: int, schedule: dict[str, Any] | None) -> float:
    if schedule is None:
        return 1.0
    warmup, total, least = schedule["warmup_steps"], schedule["total_steps"], schedule["min_lr_ratio"]
    if step < warmup:
        return step / warmup  # type: ignore[no-any-return]
    done = (step - warmup) / (total - warmup)
    fall = {"cosine": (1 + math.cos(math.pi * done)) / 2, "linear": 1 - done, "constant": 1.0}[schedule["type"]]
    return least + (1 - least) * fall  # type: ignore[no-any-return]


def plain(job: dict[str, Any], module: Any) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Weights before and after the same training in one process."""
    model = first_values(module, 5, job["weights"])
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}[job["optimizer"].pop("type")]
    optimizer = kind([p for p in model.parameters() if p.requires_grad], **job["optimizer"])
    for step, batches in zip(range(job["steps"]), steps_of(job, module), strict=False):
        optimizer.param_groups[0]["lr"] = job["optimizer"]["lr"] * rate(step, job["schedule"])
        count = sum(int((targets != IGNORE).sum()) for _, targets in batches)
        for tokens, targets in batches:
            out = model(tokens)
            flat = getattr(out, "logits", out).flatten(0, 1)
            (cross_entropy(flat, targets.flatten(), ignore_index=IGNORE, reduction="sum") / count).backward()
        if job["clipping"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), job["clipping"])
        optimizer.step()
        optimizer.zero_grad()
    return before, dict(model.named_parameters())


def difference(
    weights: dict[str, torch.Tensor], before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]
) -> float:
    """Distance from the plain loop's weights, relative to how far these have moved."""
    assert set(before) <= set(weights)
    apart = sum((weights[name] - after[name].detach()).double().pow(2).sum() for name in before)
    moved = sum((after[name].detach() - before[name]).double().pow(2).sum() for name in before)
    return float((apart / moved).sqrt())


def equal(one: Any, other: Any) -> bool:
    """Bit for bit, whatever it is nested in."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def overflown(module: Any, job: dict[str, Any]) -> dict[str, Any]:
    """What is left of a training whose every gradient overflows."""
    with patch.object(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=job["loss_scale"])):
        state = trained(module, options(job))
    before = first_values(module, 5).state_dict()
    return {
        "moved": max(float((state["model"][name] - before[name]).abs().max()) for name in before),
        "scale": state["scaler"]["scale"],
        "scheduled": state["scheduler"]["last_epoch"],
        "progress": state["progress"],
    }


def work(job: dict[str, Any]) -> dict[str, Any]:
    module = load(job["folder"])
    if job["weights"]:
        if dist.get_rank() == 0:
            publish(module, job["weights"])
        dist.barrier()
    if job["masked"]:
        pairs = sys.modules["loader"].with_targets
        sys.modules["loader"].with_targets = lambda batch: (pairs(batch)[0], mask(pairs(batch)[1]))
    if job["loss_scale"]:
        return overflown(module, job)
    with Collectives() as collectives:
        state = trained(module, options(job))
    seen: dict[str, Any] = {"collectives": dict(collectives.seen), "progress": state["progress"]}
    if job["resume_at"]:
        output = Path(job["folder"]) / "in_two_parts"
        trained(module, options(job, steps=job["resume_at"], output=output))
        again = trained(load(job["folder"]) if not job["masked"] else module, options(job, output=output, resume=True))
        seen["resumed"] = equal(state, again)
    if dist.get_rank() == 0:
        before, after = plain(job, module)
        seen["difference"] = difference(state["model"], before, after)
    dist.barrier()
    return seen


def main() -> None:
    jobs = Path(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        answers = {job["name"]: work(job) for job in json.loads(jobs.read_text("utf-8"))}
        if dist.get_rank() == 0:
            jobs.with_suffix(".answers.json").write_text(json.dumps(answers), "utf-8")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
