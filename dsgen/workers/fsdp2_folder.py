"""Runs the train() of a generated FSDP2 folder and watches it.

The folder's own code trains: its sharding, accumulation, clipping, optimizer and their order. What it would read from
the outside (data, number of steps, where to save) is given to it by exchanging the names that train.py has for it.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsgen.workers.modules import load_from_folder
from dsgen.workers.rank import Rank

_SAVE_NEVER = 10**9
# Names that the folder's train.py has, and that are exchanged here.
_NAMES = ("train", "accumulate", "shard", "windows", "dataset", "save")


@dataclass
class Seen:
    """What the code does, as it does it."""

    model: Any = None
    units: list[dict[str, Any]] = field(default_factory=list)
    """Arguments of each fully_shard call."""
    losses: list[Any] = field(default_factory=list)
    norms: list[float | None] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    optimizer: Any = None


class Folder:
    """The loaded modules of a folder, with hooks in them."""

    def __init__(self, rank: Rank, folder: str) -> None:
        self._rank = rank
        rank.events.enter("import train.py")
        self.train = load_from_folder(folder, "train")
        self.model_file = sys.modules["model"]
        self.sharding = sys.modules["sharding"]
        missing = [name for name in _NAMES if not hasattr(self.train, name)]
        if missing:
            raise AttributeError(f"train.py has no {', '.join(missing)}: it is not as dsgen build writes it")
        self.seen = Seen()
        self.before_first_step: Callable[[], None] = lambda: None
        self.before_step: Callable[[], None] = lambda: None

    @property
    def sizes(self) -> Any:
        """The tiny model's config, with the names of Hugging Face's."""
        if hasattr(self.model_file, "Decoder"):
            return self.model_file.Config.tiny()
        return self.model_file.configuration(None, True)

    def plain_model(self) -> Any:
        """The tiny model, made as one process would."""
        if hasattr(self.model_file, "Decoder"):
            return self.model_file.Decoder(self.sizes)
        return self.model_file.build(self.sizes)

    def weights(self, *, frozen_too: bool = False) -> dict[str, Any]:
        """Trained weights in full, by the names that they have without wrappers."""
        return {
            name.replace("_checkpoint_wrapped_module.", ""): full(parameter).detach().clone().cpu()
            for name, parameter in self.seen.model.named_parameters()
            if parameter.requires_grad or frozen_too
        }

    def run(self, window: Callable[[int], Any], steps: int, seed: int, output: Path) -> None:
        """The folder's training, ``window(step)`` being this rank's micro-batches."""
        options = argparse.Namespace(
            size="tiny",
            steps=steps,
            model=None,
            data=None,
            output=output,
            resume=False,
            save_every=_SAVE_NEVER,
            log_every=_SAVE_NEVER,
            seed=seed,
        )
        self._exchange(window)
        with self._watched_clipping(), self._watched_optimizer():
            self.train.train(options, self._rank.torch_device)

    def _exchange(self, window: Callable[[int], Any]) -> None:
        train, seen, events = self.train, self.seen, self._rank.events
        sharding: Any = self.sharding
        shard, accumulate, fully_shard = train.shard, train.accumulate, sharding.fully_shard
        torch = self._rank.torch

        def watched_unit(module: Any, **options: Any) -> Any:
            own = [p for p in module.parameters() if not _sharded(p)]
            seen.units.append(
                {
                    "reshard": options.get("reshard_after_forward"),
                    "trained": any(p.requires_grad for p in own),
                    "elements": sum(p.numel() for p in own),
                }
            )
            return fully_shard(module, **options)

        def watched_shard(model: Any, *rest: Any) -> None:
            events.enter("shard")
            shard(model, *rest)
            seen.model = model
            events.enter("fill the weights")

        def watched_accumulate(*given: Any) -> Any:
            step = len(seen.losses)
            if step == 0:
                self.before_first_step()
            events.enter("forward and backward", step + 1)
            self.before_step()
            seen.seconds.append(time.monotonic())
            seen.norms.append(None)
            total, count = accumulate(*given)
            seen.losses.append(total.detach().double() / float(count))
            events.enter("optimizer step", step + 1)
            return total, count

        def windows(*_given: Any, **_options: Any) -> Iterator[Any]:
            step = 0
            while True:
                yield window(step)
                step += 1

        sharding.fully_shard, train.shard, train.accumulate = watched_unit, watched_shard, watched_accumulate
        train.dataset, train.windows = (lambda *_: None), windows
        train.save = lambda *_: torch.distributed.barrier()

    @contextmanager
    def _watched_clipping(self) -> Iterator[None]:
        """The norm is what the code's own clipping says."""
        torch, seen = self._rank.torch, self.seen
        clip = torch.nn.utils.clip_grad_norm_

        def watched(*given: Any, **options: Any) -> Any:
            norm = clip(*given, **options)
            seen.norms[-1] = float(full(norm))
            return norm

        torch.nn.utils.clip_grad_norm_ = watched
        try:
            yield
        finally:
            torch.nn.utils.clip_grad_norm_ = clip

    @contextmanager
    def _watched_optimizer(self) -> Iterator[None]:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        torch, seen = self._rank.torch, self.seen

        def before(optimizer: Any, *_rest: Any) -> None:
            seen.optimizer = optimizer
            seen.rates.append(float(optimizer.param_groups[0]["lr"]))
            if seen.norms[-1] is None:  # nothing clips: the gradient is still as it was
                gradients = [p.grad for p in seen.model.parameters() if p.grad is not None]
                seen.norms[-1] = float(full(torch.nn.utils.get_total_norm(gradients)))

        def after(*_given: Any) -> None:
            seen.seconds[-1] = time.monotonic() - seen.seconds[-1]

        hooks = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def full(value: Any) -> Any:
    """A DTensor's whole value; anything else as it is."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _sharded(parameter: Any) -> bool:
    return hasattr(parameter, "device_mesh")


@contextmanager
def exchanged(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes with other values for a while; those that are absent are added."""
    absent = object()
    before = {name: getattr(owner, name, absent) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is absent:
                with suppress(AttributeError):
                    delattr(owner, name)
            else:
                setattr(owner, name, value)
