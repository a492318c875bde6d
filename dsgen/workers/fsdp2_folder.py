"""Runs the train() of a generated FSDP2 folder and watches it.

The folder's own code trains: its sharding, accumulation, clipping, optimizer and their order. What it would read from
the outside (data, number of steps, where to save) is given to it by exchanging the names that train.py has for it.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from dsgen.workers.arguments import tiny_options
from dsgen.workers.modules import load_from_folder
from dsgen.workers.rank import Rank

_SCALER = 3  # accumulate(model, window, device, scaler), the last one for fp16 only
# Names that the folder's train.py has, and that are exchanged here.
_NAMES = ("arguments", "train", "accumulate", "shard", "windows", "dataset", "save")


@dataclass
class Seen:
    """What the code does, as it does it."""

    model: Any = None
    units: list[dict[str, Any]] = field(default_factory=list)
    """Arguments of each fully_shard call."""
    losses: list[Any] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    optimizer: Any = None
    windows: list[str] = field(default_factory=list)
    """What each step has trained on, as a short text that is equal for equal data."""


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

    def run(self, steps: int, seed: int, output: Path, window: Callable[[int], Any] | None = None) -> None:
        """The folder's training; ``window(step)`` are this rank's micro-batches, None for those of its own loader."""
        options = tiny_options(self.train, steps, seed, output)
        self._exchange()
        if window is None:
            own = self.train.windows
            # Processes of its own for so little data would take longer than all of the rest.
            self.train.windows = lambda *given, **named: own(*given, **{**named, "num_workers": 0})
        else:
            given_window = window  # for the lambda, in which None is ruled out
            self.train.dataset = lambda *_: None
            self.train.windows = lambda *_, **__: (given_window(step) for step in count())
        with self._watched_clipping(), self._watched_optimizer():
            self.train.train(options, self._rank.torch_device)

    def _exchange(self) -> None:
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
            seen.windows.append(_digest(given[1]))
            seen.seconds.append(time.monotonic())
            seen.norms.append(0.0)
            total, targets = accumulate(*given)
            # Before anything clips; gradients that a scaler has multiplied are divided again.
            seen.norms[-1] = self._norm() / (given[3].get_scale() if len(given) > _SCALER else 1.0)
            seen.losses.append(total.detach().double() / float(targets))
            events.enter("optimizer step", step + 1)
            return total, targets

        sharding.fully_shard, train.shard, train.accumulate = watched_unit, watched_shard, watched_accumulate
        train.save = lambda *_: torch.distributed.barrier()

    def _norm(self) -> float:
        """Of the whole gradient; clipping at infinity changes nothing."""
        clip = self._rank.torch.nn.utils.clip_grad.clip_grad_norm_
        return float(full(clip(self.seen.model.parameters(), float("inf"))))

    @contextmanager
    def _watched_clipping(self) -> Iterator[None]:
        """Where the code clips with torch's function, the norm is what that has come to."""
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

        seen = self.seen

        def before(optimizer: Any, *_rest: Any) -> None:
            seen.optimizer = optimizer
            seen.rates.append(float(optimizer.param_groups[0]["lr"]))

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


def _digest(window: Any) -> str:
    summary = hashlib.sha256()
    for tokens, _ in window:
        summary.update(tokens.cpu().numpy().tobytes())
    return summary.hexdigest()


def _sharded(parameter: Any) -> bool:
    return hasattr(parameter, "device_mesh")
