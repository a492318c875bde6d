"""A model by itself: one step as a training loop takes it; the other frameworks differ from it in what they say."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from dsgen.workers.simulation.model import LOSSES
from dsgen.workers.simulation.tracker import Tracker

Json = Mapping[str, Any]


class Plain:
    """The model by itself; DDP's buckets are arithmetic."""

    def __init__(self, tracker: Tracker, request: Json) -> None:
        self.tracker, self.request = tracker, request
        self.model: Any = None
        self.optimizer: Any = None
        self.held: Any = None
        """Logits that a variable of the training loop holds."""
        self.mesh = self.make_mesh()

    def make_mesh(self) -> Any:
        """Before tensors lose their contents."""
        return None

    def patches(self) -> AbstractContextManager[Any]:
        """What names the bytes of this framework."""
        return nullcontext()

    def lay_out(self, model: Any) -> Any:
        kind, every = self.request["checkpointing"]
        if kind != "none":
            model.enable_checkpointing(kind, every)
        return model

    def prepare(self, model: Any) -> None:
        self.model = self.lay_out(model)
        self.optimizer = _optimizer(self.request["optimizer"], self.model)
        self.name_gradients()

    def name_gradients(self) -> None:
        for parameter in self.trained():
            self.tracker.gradients_of(parameter)

    def trained(self) -> Iterable[Any]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def micro_batch(self, last: bool) -> AbstractContextManager[Any]:
        """Around both passes of one micro-batch."""
        del last
        return nullcontext()

    def loss(self, tokens: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.request["autocast"]):
            outside = LOSSES.get(self.request["loss"])
            if self.request["keeps_logits"]:
                logits = self.model(tokens)
                # Wide ones are what the loss itself is taken of.
                self.held = logits.float() if self.request["loss"] == "full" else logits
                return LOSSES["narrow"](self.held, tokens)
            if outside is None or self.request["loss_inside"]:
                return self.model(tokens, tokens)
            return outside(self.model(tokens), tokens)

    def backward(self, loss: Any) -> None:
        loss.backward()
        self.held = None

    def step(self) -> None:
        if self.request["clipping"]:
            self.clip()
        self.optimizer.step()

    def clip(self) -> None:
        nn.utils.clip_grad_norm_(self.model.parameters(), self.request["clipping"])

    def zero(self) -> None:
        self.optimizer.zero_grad()

    def states(self) -> Iterator[tuple[Any, str]]:
        """What is alive from step to step."""
        for parameter in self.model.parameters():
            yield parameter.detach(), "parameters"
            if parameter.grad is not None:
                yield parameter.grad, "gradients"
        for state in self.optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    yield value, "optimizer_states"


def _optimizer(wanted: Json, model: Any) -> Any:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return getattr(torch.optim, wanted["type"])(trained, **wanted["arguments"])
