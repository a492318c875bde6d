"""One trial of equality: some training code and the plain loop, from the same weights, on the same global batch.

The code under trial lives in an ``observe(rank, trial) -> Observed``: that of a DeepSpeed config, that of a folder with
FSDP2 code, or one in a file of its own (``subject``). It takes the data and the clipping threshold from the trial.
"""

import gc
import json
from collections.abc import Callable, Mapping
from typing import Any

from dsgen.workers import deepspeed_folder, deepspeed_subject, fsdp2_subject
from dsgen.workers.batches import batch, targets_of
from dsgen.workers.modules import load_file
from dsgen.workers.rank import Json, Rank
from dsgen.workers.reference import Reference, Trained, Window
from dsgen.workers.subject import Observed

Observe = Callable[[Rank, "Trial"], Observed]

# One plain run serves every layout that has the same question: the process keeps it.
_TRAINED: dict[str, Trained] = {}


class Trial:
    """What a subject is given, and what is remembered of it for the comparison."""

    def __init__(self, rank: Rank, job: Json) -> None:
        self.job = job
        self._rank = rank
        self.weights: dict[str, Any] = {}
        self.clip: float | None = None
        self.sizes: Any = None
        self._make: Callable[[], Any] | None = None
        self._reference: Reference | None = None

    def micro_batches(self, step: int, rank: int | None = None) -> list[tuple[Any, Any]]:
        """(ids, targets) of one rank's micro-batches in a step; this rank's unless another is named."""
        torch, job = self._rank.torch, self.job
        number = self._rank.rank if rank is None else rank
        tokens = [
            batch(torch, self.sizes, job["micro_batch"], number, micro, job["seed"], step + 1)
            for micro in range(job["accumulation"])
        ]
        device = self._rank.torch_device
        return [(t.to(device), targets_of(torch, t, job["uneven"]).to(device)) for t in tokens]

    def everything(self, step: int) -> Window:
        """Every micro-batch of all ranks."""
        return [self.micro_batches(step, rank) for rank in range(self._rank.world_size)]

    def start(
        self, sizes: Any, make: Callable[[], Any], weights: Mapping[str, Any], own_clip: float | None = None
    ) -> float | None:
        """Told when the weights are known: the threshold to clip at, None for none.

        ``make`` makes the plain model; ``weights`` are all of them in full, by their plain names; ``own_clip`` is the
        threshold of code that has one.
        """
        self.sizes = sizes
        self._make = make
        self.weights = {name: value.detach().clone() for name, value in weights.items()}
        wanted = self.job["clip"]
        if isinstance(wanted, dict):
            # Of a gradient that is longer than the threshold, or nobody would notice that clipping is forgotten.
            norm = self.reference().first_norm(self.weights, self.everything(0)) if self._rank.rank == 0 else 0.0
            wanted = wanted["share"] * self._rank.from_first(norm)
        elif wanted == "own":
            wanted = own_clip
        self.clip = wanted
        return self.clip

    def reference(self) -> Reference:
        if self._reference is None:
            assert self._make is not None
            model = self._make().to(self._rank.torch_device)
            self._reference = Reference(self._rank.torch, model, self.job["precision"], self.job["sums"])
        return self._reference

    def plain(self, optimizer: Json) -> Trained:
        """The plain loop's training, with the configured optimizer or, where only the code names it, with that."""
        how = {"dummy_step": False, **(self.job["reference"] or optimizer)}
        total = sum(float(value.double().sum()) for value in self.weights.values())
        key = json.dumps([how, self.clip, total, list(self.weights), *[self.job[name] for name in _QUESTION]])
        if key not in _TRAINED:
            reference = self.reference()
            _TRAINED[key] = reference.train(self.weights, self.everything, self.job["steps"], self.clip, how)
        return _TRAINED[key]


_QUESTION = ("model", "precision", "sums", "micro_batch", "accumulation", "steps", "seed", "uneven")


def run(rank: Rank, job: Json) -> dict[str, Any]:
    """Writes a ``figures`` event on rank 0."""
    trial = Trial(rank, job)
    observed = _observer(job["subject"])(rank, trial)
    if rank.rank == 0:
        rank.events.enter("train in a plain loop")
        plain = trial.plain(observed.optimizer)
        rank.events.write("figures", **_figures(rank.torch, trial, observed, plain))
    gc.collect()
    rank.events.enter("wait for the plain loop")
    rank.torch.distributed.barrier()
    return {}


def _observer(subject: str) -> Observe:
    known = {
        "deepspeed": deepspeed_subject.observe,
        "deepspeed_folder": deepspeed_folder.observe,
        "fsdp2": fsdp2_subject.observe,
    }
    if subject in known:
        return known[subject]
    observe: Observe = load_file(subject, "dsgen_smoke_subject").observe
    return observe


def _figures(torch: Any, trial: Trial, observed: Observed, plain: Trained) -> dict[str, Any]:
    apart = sum((observed.after[name].double() - value.double()).square().sum() for name, value in plain.after.items())
    went = sum((observed.after[name].double() - trial.weights[name].double()).square().sum() for name in plain.after)
    moved = sum((value.double() - trial.weights[name].double()).square().sum() for name, value in plain.after.items())
    return {
        "losses": observed.losses,
        "norms": observed.norms,
        "plain_losses": plain.losses,
        "plain_norms": plain.norms,
        "clip": trial.clip,
        # Lengths of: the difference at the end, the code's own way, the plain loop's way.
        "apart": float(torch.sqrt(apart)),
        "distance": float(torch.sqrt(went)),
        "moved": float(torch.sqrt(moved)),
        "collectives": observed.collectives,
        "parameters": sum(value.numel() for value in plain.after.values()),
        "optimizer": observed.optimizer,
        "layout": observed.layout,
    }
