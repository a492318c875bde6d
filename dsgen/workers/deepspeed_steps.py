"""One rank: trains each config of the request for a few steps with the real DeepSpeed.

All configs share one process group; the engine is destroyed between two of them. The first failure ends
the process (the other ranks may hang in a collective by then); whoever started it goes on with the rest.
"""

import gc
import importlib.util
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from dsgen.workers import peak
from dsgen.workers.batches import batch
from dsgen.workers.wire import Events, open_worker

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Rank:
    """This process among the others, and the libraries it has loaded."""

    rank: int
    world_size: int
    device: str
    """cpu or cuda."""
    torch: Any
    deepspeed: Any
    events: Events

    @property
    def torch_device(self) -> Any:
        return self.torch.device(self.device, int(os.environ["LOCAL_RANK"]) if self.device == "cuda" else None)


def main() -> None:
    """Writes ``phase``, ``step`` and ``done`` events for each case, or one ``error``."""
    request, events = open_worker()
    try:
        rank = _join(request, events)
        for index, case in enumerate(request["cases"]):
            events.case = index
            _run_case(rank, case)
        events.case = None
        events.enter("leave the process group")
        rank.torch.distributed.barrier()
        rank.torch.distributed.destroy_process_group()
    except Exception as error:
        events.fail(error)


def _join(request: Json, events: Events) -> Rank:
    events.enter("import torch")
    import torch

    events.enter("import deepspeed")
    import deepspeed
    from deepspeed.accelerator import get_accelerator

    rank = Rank(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), request["device"], torch, deepspeed, events)
    if rank.device == "cuda":
        torch.cuda.set_device(rank.torch_device)
    events.enter("init_process_group")
    backend = get_accelerator().communication_backend_name()
    torch.distributed.init_process_group(
        backend,
        # A file needs no port, so two runs on one machine can't get into each other's way.
        init_method=Path(request["rendezvous"]).as_uri(),
        rank=rank.rank,
        world_size=rank.world_size,
        timeout=timedelta(seconds=request["timeout"]),
    )
    events.enter("deepspeed.init_distributed")
    deepspeed.init_distributed(backend)
    return rank


def _run_case(rank: Rank, case: Json) -> None:
    torch, events = rank.torch, rank.events
    start = time.monotonic()
    peak.reset(torch, rank.device)
    events.enter("build the model")
    model_file = _load(case["model"])
    sizes = model_file.Config.tiny()
    torch.manual_seed(case["seed"])  # The same weights on every rank, as from a checkpoint.
    model = model_file.Decoder(sizes)
    kind, every = case["checkpointing"]
    if kind != "none":
        model.enable_checkpointing(kind, every)

    events.enter("deepspeed.initialize")
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    engine, *_ = rank.deepspeed.initialize(
        model=model,
        model_parameters=trainable,
        optimizer=_optimizer(torch, case["optimizer"], trainable),
        config=case["config"],
        dist_init_required=False,
    )
    events.enter("read the weights")
    before = _weights(rank, engine)
    events.write(
        "engine", zero_stage=int(engine.zero_optimization_stage()), partitioned=_partitioned(engine.module.parameters())
    )
    for step in range(1, case["steps"] + 1):
        _train_step(rank, engine, sizes, case, step)

    events.enter("read the weights")
    after = _weights(rank, engine)
    result = {
        "seconds": time.monotonic() - start,
        "parameters": sum(tensor.numel() for tensor in before.values()),
        "skipped_steps": int(engine.skipped_steps),
        **_movement(torch, before, after),
        **peak.measure(torch, rank.device),
    }
    events.enter("engine.destroy")
    engine.destroy()
    del engine, model, trainable, before, after, _
    gc.collect()
    events.write("done", **result)


def _train_step(rank: Rank, engine: Any, sizes: Any, case: Json, step: int) -> None:
    torch, events = rank.torch, rank.events
    start = time.monotonic()
    accumulation = int(engine.gradient_accumulation_steps())
    rate = engine.get_lr()
    losses = []
    for micro_step in range(accumulation):
        tokens = batch(torch, sizes, int(engine.train_micro_batch_size_per_gpu()), rank.rank, micro_step, case["seed"])
        tokens = tokens.to(rank.torch_device)
        events.enter("forward", step)
        loss = engine(tokens, tokens)
        events.enter("backward", step)
        engine.backward(loss)
        events.enter("optimizer step", step)
        engine.step()
        losses.append(loss.detach().float())
    events.enter("average the loss", step)
    mean = torch.stack(losses).mean()
    torch.distributed.all_reduce(mean)
    norm = engine.get_global_grad_norm()
    events.write(
        "step",
        step=step,
        loss=_number(mean / rank.world_size),
        gradient_norm=None if norm is None else _number(norm),
        learning_rate=_number(rate[0]) if rate else None,
        seconds=time.monotonic() - start,
    )


def _number(value: Any) -> float | str:
    """A float; NaN and infinities by name, for JSON has none."""
    number = float(value)
    return number if number - number == 0 else str(number)


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("dsgen_smoke_model", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def _optimizer(torch: Any, wanted: Json | None, parameters: Any) -> Any:
    """The optimizer that a training script would pass where the config has none."""
    if wanted is None:
        return None
    return getattr(torch.optim, wanted["type"])(parameters, **wanted["params"])


def _weights(rank: Rank, engine: Any) -> dict[str, Any]:
    """Trained parameters in full: the fp32 master copy where DeepSpeed keeps one, the model's own otherwise."""
    from deepspeed.utils import safe_get_full_fp32_param

    weights = {}
    for name, parameter in engine.module.named_parameters():
        if not parameter.requires_grad:
            continue
        full = safe_get_full_fp32_param(parameter)
        if full is None:
            with rank.deepspeed.zero.GatheredParameters([parameter]):
                full = parameter.detach()
        weights[name] = full.clone().cpu()
    return weights


def _partitioned(parameters: Iterable[Any]) -> int:
    """Elements that stage 3 keeps in shards between their uses; persistent ones stay whole on every rank."""
    return sum(p.ds_numel for p in parameters if hasattr(p, "ds_id") and not p.ds_persist)


def _movement(torch: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """How far the weights went, ||after - before|| / ||before||, and a sum that ranks can compare."""
    moved = sum((after[name].double() - start.double()).square().sum() for name, start in before.items())
    size = sum(start.double().square().sum() for start in before.values())
    return {
        "moved": _number(torch.sqrt(moved / size)),
        "weights_sum": _number(sum(tensor.double().sum() for tensor in after.values())),
        "master_weights": all(tensor.dtype == torch.float32 for tensor in after.values()),
    }


if __name__ == "__main__":
    main()
