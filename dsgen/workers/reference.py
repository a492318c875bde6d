"""The plain loop that every layout must agree with: one process, one copy of the model, no library but torch.

Per optimizer step: all ranks' micro-batches in turn, each loss divided by the number of targets of the whole step
(with equally long sequences that is the mean over micro-batches and ranks), the gradient clipped by its norm, one step.

In bf16 it does what mixed precision promises: weights rounded to bf16 compute the loss, and their fp32 copy takes the
step. Where gradients are added up is the layout's to say (``sums``): all in fp32; "on ranks": each adds up its own, in
bf16 or fp32, and these sums are added up over the ranks in bf16; "each step": over the ranks in every micro-step, in
bf16, and these sums in bf16 or fp32.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsgen.workers.batches import IGNORE_INDEX

Window = Sequence[Sequence[tuple[Any, Any]]]
"""(ids, targets) of every micro-batch of a step, by rank."""


@dataclass(frozen=True)
class Trained:
    """What the plain loop came to."""

    losses: list[float]
    norms: list[float]
    """Of the gradient before clipping, per step."""
    after: dict[str, Any]


class Reference:
    """The model, and its training from given weights."""

    def __init__(self, torch: Any, model: Any, precision: str, sums: str) -> None:
        self._torch = torch
        self._sums = sums
        self._model = model
        self._computing = model if precision == "fp32" else _rounded(copy.deepcopy(model), getattr(torch, precision))

    def first_norm(self, weights: Mapping[str, Any], window: Window) -> float:
        """Norm of the first gradient."""
        self._take(weights)
        self._accumulate(window)
        return self._clip(None)

    def train(
        self, weights: Mapping[str, Any], window: Callable[[int], Window], steps: int, clip: float | None, how: Any
    ) -> Trained:
        """``how``: the optimizer's ``type`` and ``params``, and whether it makes a ``dummy_step`` first."""
        self._take(weights)
        trained = [p for p in self._model.parameters() if p.requires_grad]
        optimizer = getattr(self._torch.optim, how["type"])(trained, **how["params"])
        if how["dummy_step"]:
            for parameter in trained:
                parameter.grad = self._torch.zeros_like(parameter)
            optimizer.step()
        losses, norms = [], []
        for step in range(steps):
            losses.append(self._accumulate(window(step)))
            norms.append(self._clip(clip))
            optimizer.step()
        after = {name: p.detach().clone() for name, p in self._model.named_parameters() if p.requires_grad}
        return Trained(losses, norms, after)

    def _take(self, weights: Mapping[str, Any]) -> None:
        """Trained weights; frozen ones stay as the model was made, which is how every rank makes them."""
        with self._torch.no_grad():
            for name, parameter in self._model.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name])

    def _accumulate(self, window: Window) -> float:
        """Leaves the gradient of a step in the model; returns the loss."""
        torch = self._torch
        own, computing = list(self._model.parameters()), list(self._computing.parameters())
        if self._computing is not self._model:
            with torch.no_grad():
                for master, rounded in zip(own, computing, strict=True):
                    rounded.copy_(master)
        self._model.zero_grad()
        count = sum(int((targets != IGNORE_INDEX).sum()) for rank in window for _, targets in rank)
        total = 0.0
        sums: list[Any] = [None] * len(own)
        for part in self._parts(window):
            # One rank's micro-batches, or one micro-step of all ranks: added up in the type that its gradients have.
            inner: list[Any] = [None] * len(own)
            for tokens, targets in part:
                loss = self._loss(tokens, targets) / count
                loss.backward()
                total += float(loss.detach())
                _add(inner, [self._as_summed(parameter.grad) for parameter in computing])
                self._computing.zero_grad()
            _add(sums, [self._between(gradient) for gradient in inner])
        for master, gradient in zip(own, sums, strict=True):
            master.grad = None if gradient is None else gradient.float()
        return total

    def _parts(self, window: Window) -> Window:
        if self._sums.endswith("each step"):
            return [list(step) for step in zip(*window, strict=True)]
        return window

    def _as_summed(self, gradient: Any) -> Any:
        inner_in_fp32 = self._sums in ("fp32", "fp32 on ranks")
        return gradient.float() if gradient is not None and inner_in_fp32 else gradient

    def _between(self, gradient: Any) -> Any:
        """A sum of the inner kind as one of the outer: over the ranks in bf16, or over the micro-steps in fp32."""
        if gradient is None:
            return None
        if self._sums == "fp32 on ranks":
            return gradient.bfloat16()
        return gradient.float() if self._sums == "fp32 each step" else gradient

    def _loss(self, tokens: Any, targets: Any) -> Any:
        """Cross-entropy summed over the targets, in fp32."""
        out = self._computing(tokens)
        logits = getattr(out, "logits", out).float().flatten(0, -2)
        return self._torch.nn.functional.cross_entropy(
            logits, targets.flatten(), ignore_index=IGNORE_INDEX, reduction="sum"
        )

    def _clip(self, clip: float | None) -> float:
        """Norm of the gradient; where it is above the threshold, the gradient is scaled down to it.

        The 1e-6 is torch's and DeepSpeed's, too (torch/nn/utils/clip_grad.py).
        """
        gradients = [p.grad for p in self._model.parameters() if p.grad is not None]
        norm = math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))
        if clip is not None and clip < norm:
            for gradient in gradients:
                gradient.mul_(clip / (norm + 1e-6))
        return norm


def _rounded(model: Any, precision: Any) -> Any:
    """With parameters in that type. Buffers, such as the frequencies of a rotary embedding, keep theirs, as they do in
    FSDP2 (torch.distributed.fsdp.MixedPrecisionPolicy); the decoder that DeepSpeed trains here has none."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(precision)
    return model


def _add(sums: list[Any], gradients: Sequence[Any]) -> None:
    for index, gradient in enumerate(gradients):
        if gradient is not None:
            sums[index] = gradient if sums[index] is None else sums[index] + gradient
