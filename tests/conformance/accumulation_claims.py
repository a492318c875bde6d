"""What the rules for training code claim about accumulation, tried in one process: prints one JSON object."""

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

K = 4
BATCHES = 10


def net() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(6, 1)


def batch(number: int) -> torch.Tensor:
    torch.manual_seed(100 + number)
    return torch.randn(5, 6)


def loss_of(model: nn.Module, number: int) -> torch.Tensor:
    return model(batch(number)).pow(2).mean()


def windows(due: Callable[[int], bool]) -> list[int]:
    """Micro-batches of each update, and at last those that are left over."""
    sizes, size = [], 0
    for i in range(BATCHES):
        size += 1
        if due(i):
            sizes.append(size)
            size = 0
    return [*sizes, size]


def gates() -> dict[str, list[int]]:
    return {
        "i % k == 0": windows(lambda i: i % K == 0),
        "(i + 1) % k == 0": windows(lambda i: (i + 1) % K == 0),
        "i % k == k - 1": windows(lambda i: i % K == K - 1),
        "i and i % k == 0": windows(lambda i: bool(i) and i % K == 0),
        "with a last one": windows(lambda i: (i + 1) % K == 0 or i + 1 == BATCHES),
    }


def gradient(
    divisor: int = 1, numbers: range = range(K), each: Callable[[nn.Module], Any] | None = None
) -> torch.Tensor:
    model = net()
    for number in numbers:
        (loss_of(model, number) / divisor).backward()
        if each is not None:
            each(model)
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def of_the_whole_batch() -> torch.Tensor:
    model = net()
    model(torch.cat([batch(number) for number in range(K)])).pow(2).mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def sizes() -> dict[str, float]:
    """The accumulated gradient's norm, relative to that of the whole batch."""
    true = of_the_whole_batch().norm()
    return {
        "not divided": float(gradient().norm() / true),
        "divided": float(gradient(K).norm() / true),
        "divided twice": float(gradient(K * K).norm() / true),
    }


def directions() -> dict[str, float]:
    """The cosine between a gradient and that of the whole batch."""

    def cosine(other: torch.Tensor) -> float:
        return float(torch.cosine_similarity(of_the_whole_batch(), other, dim=0))

    clip = lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # noqa: E731
    return {
        "divided": cosine(gradient(K)),
        "cleared with each": cosine(gradient(K, range(K - 1, K))),
        "clipped with each": cosine(gradient(K, each=clip)),
    }


def clearing() -> dict[str, float]:
    """How far the weights get in three steps."""

    def run(order: str) -> float:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for number in range(3):
            loss_of(model, number).backward()
            if order == "before the step":
                optimizer.zero_grad()
            optimizer.step()
            if order == "after the step":
                optimizer.zero_grad()
        return float((model.weight - net().weight).norm())

    return {order: run(order) for order in ("before the step", "after the step", "never")}


def schedule() -> dict[str, float]:
    """The learning rate after half of the micro-batches, of a schedule that is as long as there are updates."""

    def run(per_update: bool) -> float:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        updates = 40 // K
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=updates)
        for i in range(20):
            if (i + 1) % K == 0:
                optimizer.step()
            if not per_update or (i + 1) % K == 0:
                scheduler.step()
        return optimizer.param_groups[0]["lr"]

    return {"per micro-batch": run(False), "per update": run(True)}


def fp16() -> dict[str, float]:
    """The part of small gradients that becomes zero in fp16, and in bf16."""
    torch.manual_seed(0)
    small = torch.randn(100_000) * 1e-8
    return {str(kind): float((small.to(kind) == 0).float().mean()) for kind in (torch.float16, torch.bfloat16)}


def scaled_clip() -> dict[str, float]:
    """The gradient's norm after a clip to 1.0, then unscaled."""

    def run(unscaled_first: bool) -> float:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
        scaler.scale(loss_of(model, 0)).backward()
        if unscaled_first:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not unscaled_first:
            scaler.unscale_(optimizer)
        return float(torch.cat([p.grad.flatten() for p in model.parameters()]).norm())

    return {"unscaled first": run(True), "as it is": run(False)}


def sampler_and_shuffle() -> str:
    try:
        torch.utils.data.DataLoader(range(4), sampler=torch.utils.data.SequentialSampler(range(4)), shuffle=True)
    except ValueError as error:
        return str(error)
    return "nothing"


CLAIMS = (gates, sizes, directions, clearing, schedule, fp16, scaled_clip, sampler_and_shuffle)

if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.stdout.write(json.dumps({claim.__name__: claim() for claim in CLAIMS}) + "\n")
