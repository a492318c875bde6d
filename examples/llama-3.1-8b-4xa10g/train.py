"""Trains llama-3.1-8b with DeepSpeed, ZeRO stage 3, on 4 GPUs.

Usage:
    launch/torchrun.sh                                  the whole training, from scratch
    launch/torchrun.sh --weights FOLDER                 from published weights on
    launch/torchrun.sh --resume                         from the last checkpoint on, with
                                                        the same --weights as before
    NPROC=2 launch/torchrun.sh --size tiny --steps 3    on any machine, in seconds
"""

import argparse
import json
import shutil
import time
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from data import dataset, micro_batches
from deepspeed.accelerator import get_accelerator
from model import Config, Decoder
from pretrained import Numbers, Place, published, read
from tiny import SEQUENCE_LENGTH as TINY_LENGTH
from tiny import tiny_config

HERE = Path(__file__).resolve().parent
SEQUENCE_LENGTH = 4096


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--weights", type=Path, help="a folder of Hugging Face")
    parser.add_argument("--steps", type=int, default=2000, help="optimizer steps")
    parser.add_argument("--data", type=Path, help="token ids, a flat binary file")
    parser.add_argument("--output", type=Path, default=HERE / "checkpoints")
    parser.add_argument("--resume", action="store_true", help="from the last save on")
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS")
    parser.add_argument("--keep", type=int, default=2, metavar="CHECKPOINTS")
    parser.add_argument("--log-every", type=int, default=1, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def fill(model: Decoder, places: dict[str, Place], rank: int) -> None:
    """Gives the model published values, one tensor at a time; adapters keep theirs.

    Rank 0 reads, and every rank keeps its shard of what it is told.
    """
    for name, parameter in model.named_parameters():
        if name not in places:
            continue
        with deepspeed.zero.GatheredParameters([parameter], modifier_rank=0):
            if rank == 0:
                parameter.data.copy_(read(places[name]))


def remove_older(folder: Path, step: int, keep: int) -> None:
    """Leaves ``keep`` checkpoints: that of ``step``, and the newest before it."""
    prefix = "global_step"
    found = [path.name.removeprefix(prefix) for path in folder.glob(f"{prefix}*")]
    steps = [int(number) for number in found if number.isdecimal()]
    older = sorted((number for number in steps if number < step), reverse=True)
    for number in older[keep - 1 :]:
        shutil.rmtree(folder / f"{prefix}{number}")


def main() -> None:
    options = arguments()
    tiny = options.size == "tiny"
    accelerator = get_accelerator()
    on_gpu = accelerator.device_name() != "cpu"
    deepspeed.init_distributed()
    rank, world = dist.get_rank(), dist.get_world_size()

    ds_config = json.loads((HERE / "ds_config.json").read_text("utf-8"))
    if tiny:
        ds_config = tiny_config(ds_config, on_gpu)
    config = Config.tiny() if tiny else Config()
    places: dict[str, Place] = {}
    if options.weights:
        config, places = published(options.weights, config)
    length = TINY_LENGTH if tiny else SEQUENCE_LENGTH

    torch.manual_seed(options.seed)
    # Each layer is sharded as soon as it is made: no rank ever holds the whole model.
    with deepspeed.zero.Init(config_dict_or_path=ds_config):
        model = Decoder(config)
    if not options.resume:
        fill(model, places, rank)
    model.enable_checkpointing("full")
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        model_parameters=[p for p in model.parameters() if p.requires_grad],
        config=ds_config,
    )

    first = 0
    if options.resume:
        path, state = engine.load_checkpoint(str(options.output))
        if path is None:
            raise SystemExit(f"no checkpoint in {options.output}")
        Numbers(config).load_state_dict(state["numbers"])
        first = state["step"]
    # Model weights start equal on all ranks; what is random from here on differs.
    torch.manual_seed(options.seed + 1 + first * world + rank)

    micro_batch = engine.train_micro_batch_size_per_gpu()
    accumulation = engine.gradient_accumulation_steps()
    data = dataset(options.data, length, config.vocab_size)
    batches = micro_batches(
        data,
        micro_batch,
        consumed=first * accumulation,
        seed=options.seed,
        num_workers=2,
        pin_memory=on_gpu,
    )

    tokens_per_step = micro_batch * accumulation * world * length
    engine.train()
    logged, since = first, time.perf_counter()
    for step in range(first + 1, options.steps + 1):
        rate = engine.get_lr()[0]
        total = torch.zeros((), device=engine.device)
        for _ in range(accumulation):
            tokens = next(batches).to(engine.device, non_blocking=True)
            loss = engine(tokens, labels=tokens)
            # The engine divides the loss by the accumulation steps, and steps (clips,
            # updates, zeroes) in the last micro-batch only.
            engine.backward(loss)
            engine.step()
            total += loss.detach()

        if step % options.log_every == 0 or step == options.steps:
            dist.all_reduce(total)  # also waits for the step to be done
            seconds = time.perf_counter() - since
            if rank == 0:
                mean = total.item() / accumulation / world
                norm = engine.get_global_grad_norm()  # fp32 without ZeRO has none
                shown = "-" if norm is None else f"{float(norm):.3f}"
                speed = (step - logged) * tokens_per_step / seconds
                print(
                    f"step {step}  loss {mean:.4f}  lr {rate:.3g}"
                    f"  grad norm {shown}  tokens/s {speed:.0f}",
                    flush=True,
                )
            logged, since = step, time.perf_counter()
        if step % options.save_every == 0 or step == options.steps:
            # Every rank saves its own shard.
            state = {"step": step, "numbers": Numbers(config).state_dict()}
            engine.save_checkpoint(str(options.output), client_state=state)
            # All ranks have written by now, and what --resume reads is the new one.
            if rank == 0:
                remove_older(options.output, step, options.keep)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
