"""Trains llama-3.1-8b with FSDP2 on 8 GPUs; sharding.py says how it is laid out.

Usage:
    launch/torchrun.sh                                  the whole training, from scratch
    launch/torchrun.sh --weights FOLDER                 from published weights on
    launch/torchrun.sh --resume                         from the last checkpoint on, with
                                                        the same --weights as before
    NPROC=2 launch/torchrun.sh --size tiny --steps 3    on any machine, in seconds
"""

import argparse
import math
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from checkpoint import TrainingState, load, save
from data import dataset
from loader import IGNORE_INDEX, Batch, Progress, windows
from model import Config, Decoder
from pretrained import Numbers, Place, published
from sharding import device_mesh, shard
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from weights import fill, initialise

HERE = Path(__file__).resolve().parent
SEQUENCE_LENGTH = 16384
TINY_LENGTH = 32
MICRO_BATCH = 1  # sequences of one rank in one forward pass
ACCUMULATION = 4  # micro-batches in one optimizer step
# Gradients are reduced after every micro-batch, not only after the last: whole in fp32
# they would take 29.9 GiB of each GPU, which does not fit.
REDUCE_EACH_MICRO_BATCH = True
CLIPPING = 1.0  # largest norm of the gradient
WARMUP_STEPS = 100
TOTAL_STEPS = 5000
LEAST_RATE = 0.1  # last learning rate divided by the peak


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--weights", type=Path, help="a folder of Hugging Face")
    parser.add_argument("--steps", type=int, default=5000, help="optimizer steps")
    parser.add_argument("--data", type=Path, help="token ids, a flat binary file")
    parser.add_argument("--output", type=Path, default=HERE / "checkpoints")
    parser.add_argument("--resume", action="store_true", help="from the last save on")
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS")
    parser.add_argument("--keep", type=int, default=2, metavar="CHECKPOINTS")
    parser.add_argument("--log-every", type=int, default=1, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def set_up() -> torch.device:
    """Joins the other ranks; torchrun says which they are."""
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def rate_at(step: int) -> float:
    """Share of the peak learning rate at an optimizer step, from 0."""
    if step < WARMUP_STEPS:
        return step / WARMUP_STEPS
    done = (step - WARMUP_STEPS) / max(TOTAL_STEPS - WARMUP_STEPS, 1)
    falling = 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    return LEAST_RATE + (1 - LEAST_RATE) * falling


def summed_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy summed over the targets, in fp32."""
    flat = logits.float().flatten(0, 1)
    return F.cross_entropy(
        flat, targets.flatten(), ignore_index=IGNORE_INDEX, reduction="sum"
    )


def accumulate(
    model: nn.Module, window: list[Batch], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Gradients of one optimizer step; the summed loss of this rank, all ranks' targets.

    Ranks and micro-batches may hold different numbers of targets, so the mean is over
    all targets of the step, not over micro-batches.
    """
    assert isinstance(model, FSDPModule)
    world = dist.get_world_size()
    here = sum(int((targets != IGNORE_INDEX).sum()) for _, targets in window)
    count = torch.tensor(here, device=device)
    dist.all_reduce(count)
    count.clamp_(min=1)  # a step without any target changes nothing
    total = torch.zeros((), device=device)
    for index, (tokens, targets) in enumerate(window):
        last = index == len(window) - 1
        model.set_requires_gradient_sync(last or REDUCE_EACH_MICRO_BATCH)
        # Weights do not change within a step: they stay gathered until its end.
        model.set_reshard_after_backward(last)
        tokens = tokens.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        loss = summed_loss(model(tokens), targets)
        # FSDP takes the mean over ranks; times world it is the sum.
        (loss * world / count).backward()
        total += loss.detach()
    return total, count


def train(options: argparse.Namespace, device: torch.device) -> None:
    tiny = options.size == "tiny"
    rank, world = dist.get_rank(), dist.get_world_size()
    config = Config.tiny() if tiny else Config()
    places: dict[str, Place] = {}
    if options.weights:
        config, places = published(options.weights, config)
    length = TINY_LENGTH if tiny else SEQUENCE_LENGTH

    mesh = device_mesh(device.type)
    with torch.device("meta"):  # takes no memory: each rank fills its shard only
        model = Decoder(config)
    shard(model, mesh, model.layers)
    initialise(model, options.seed, device)
    if not options.resume:
        fill(model, places, device)

    # After sharding: the optimizer keeps what it is given.
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=2e-05,
        betas=(0.9, 0.95),
        eps=1e-08,
        weight_decay=0.1,
        fused=True,
    )
    progress = Progress()
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_at)
    state = TrainingState(
        model,
        optimizer,
        progress=progress,
        scheduler=scheduler,
        numbers=Numbers(config),
    )
    if options.resume:
        load(state, options.output)

    steps = windows(
        dataset(options.data, length, config.vocab_size),
        progress,
        MICRO_BATCH,
        ACCUMULATION,
        seed=options.seed,
        num_workers=2,
        pin_memory=device.type == "cuda",
    )
    model.train()
    seen, since = 0, time.perf_counter()
    while progress.step < options.steps:
        window = next(steps)
        # Every step draws from a seed of its own: a resumed run draws the same numbers.
        torch.manual_seed(options.seed + 1 + progress.step * world + rank)
        loss, count = accumulate(model, window, device)
        # On shards this is the norm of the whole gradient.
        norm = nn.utils.clip_grad_norm_(model.parameters(), CLIPPING)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        progress.step += 1
        seen += world * length * sum(len(tokens) for tokens, _ in window)

        last = progress.step == options.steps
        if last or progress.step % options.log_every == 0:
            dist.all_reduce(loss)
            whole = norm.full_tensor() if isinstance(norm, DTensor) else norm
            mean = (loss / count).item()  # waits for the step to be done
            speed = seen / (time.perf_counter() - since)
            if rank == 0:
                print(
                    f"step {progress.step}  loss {mean:.4f}  lr {rate:.3g}"
                    f"  grad norm {whole.item():.3f}  tokens/s {speed:.0f}",
                    flush=True,
                )
            seen, since = 0, time.perf_counter()
        if last or progress.step % options.save_every == 0:
            save(state, options.output, progress.step, options.keep)


def main() -> None:
    options = arguments()
    device = set_up()
    train(options, device)
    # Not after an exception: the other ranks are in a collective then, and to leave the
    # group waits for them.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
