"""What the rules for training code claim about torch, tried: run once per rank, prints one JSON object.

Every function is one claim; its result is what was seen, for the test to judge.
"""

import contextlib
import copy
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

warnings.simplefilter("ignore")
CPU = torch.device("cpu")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.inner(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(8, 8)
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def data(number: int = 0) -> torch.Tensor:
    """Other numbers for every rank and micro-batch."""
    torch.manual_seed(1000 + 10 * number + dist.get_rank())
    return torch.randn(4, 8)


def flat(tensors: Any) -> torch.Tensor:
    return torch.cat([t.full_tensor().flatten() if hasattr(t, "full_tensor") else t.flatten() for t in tensors])


def largest_difference(tensor: torch.Tensor) -> float:
    """How far ranks are apart."""
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor.contiguous())
    return float((parts[0] - parts[1]).abs().max())


class Counting(TorchDispatchMode):
    """Counts collectives by name, DDP's reducer included."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "c10d" in str(func):
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))

    @property
    def reductions(self) -> int:
        return sum("allreduce_" in name for name in self.seen)


def raised(action: Callable[[], object]) -> str:
    try:
        action()
    except Exception as error:
        return type(error).__name__
    return "nothing"


def fsdp1(net: nn.Module | None = None, **more: Any) -> FullyShardedDataParallel:
    return FullyShardedDataParallel(
        net or Net(), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=CPU, use_orig_params=True, **more
    )


def fsdp2(**more: Any) -> Net:
    net = Net()
    for layer in net.layers:
        fully_shard(layer, **more)
    fully_shard(net, **more)
    return net


def ddp_reductions() -> dict[str, int]:
    """All-reduces of two micro-batches, by what no_sync holds of the first one."""
    nothing = contextlib.nullcontext

    def run(forward: bool, backward: bool) -> int:
        model = DistributedDataParallel(Net())
        with Counting() as counting:
            for number in range(2):
                held = number == 0
                with model.no_sync() if held and forward else nothing():
                    loss = model(data(number)).mean() / 2
                with model.no_sync() if held and backward else nothing():
                    loss.backward()
        return counting.reductions

    model = DistributedDataParallel(Net())
    with Counting() as both:
        with model.no_sync():
            (model(data(0)).mean() / 2).backward()
        (model(data(1)).mean() / 2).backward()
    return {"without": run(False, False), "backward only": run(False, True), "both": both.reductions}


def ddp_no_sync_inverted() -> float:
    """How far the gradients of two ranks are apart where no_sync holds the last micro-batch."""
    model = DistributedDataParallel(Net())
    (model(data(0)).pow(2).mean() / 2).backward()
    with model.no_sync():
        (model(data(1)).pow(2).mean() / 2).backward()
    return largest_difference(flat(p.grad for p in model.parameters()))


def ddp_no_sync_right() -> float:
    model = DistributedDataParallel(Net())
    with model.no_sync():
        (model(data(0)).pow(2).mean() / 2).backward()
    (model(data(1)).pow(2).mean() / 2).backward()
    return largest_difference(flat(p.grad for p in model.parameters()))


def fsdp2_lacks() -> dict[str, bool]:
    net = fsdp2()
    return {name: hasattr(net, name) for name in ("no_sync", "clip_grad_norm_", "set_requires_gradient_sync")}


def fsdp2_sync_stays_off() -> dict[str, Any]:
    net = fsdp2()
    before = flat(p.detach().clone() for p in net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    net.set_requires_gradient_sync(False)
    net(data()).pow(2).mean().backward()
    optimizer.step()
    moved = float((flat(p.detach() for p in net.parameters()) - before).abs().max())
    return {"none": all(p.grad is None for p in net.parameters()), "moved": moved}


def norms() -> dict[str, float]:
    """The gradient's norm as each clip sees it, and as it is."""
    plain = DistributedDataParallel(Net())
    plain(data()).pow(2).mean().backward()
    true = float(torch.nn.utils.clip_grad_norm_(plain.parameters(), 1e9))
    one = fsdp1()
    one(data()).pow(2).mean().backward()
    local = float(torch.nn.utils.clip_grad_norm_(one.parameters(), 1e9))
    own = float(one.clip_grad_norm_(1e9))
    two = fsdp2()
    two(data()).pow(2).mean().backward()
    norm = torch.nn.utils.clip_grad_norm_(two.parameters(), 1e9)
    return {"true": true, "torch on fsdp1": local, "fsdp1": own, "torch on fsdp2": float(norm.full_tensor())}


def plain_scaler_on_fsdp1() -> float:
    """The scale after a step in which one rank alone saw an infinity."""
    model = fsdp1()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(model(data()).pow(2).mean()).backward()
    if dist.get_rank() == 0:
        next(p for p in model.parameters() if p.grad is not None and p.grad.numel()).grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale()


def moved_after(shard: Callable[[Net], nn.Module]) -> float:
    """How far weights get with an optimizer that was built before sharding."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    model = shard(net)
    before = flat(p.detach().clone() for p in model.parameters())
    model(data()).pow(2).mean().backward()
    optimizer.step()
    return float((flat(p.detach() for p in model.parameters()) - before).abs().max())


def shard_fsdp2(net: Net) -> nn.Module:
    for layer in net.layers:
        fully_shard(layer)
    return fully_shard(net)


def optimizer_first() -> dict[str, float]:
    policy = ModuleWrapPolicy({Block})
    return {
        "fsdp2": moved_after(shard_fsdp2),
        "fsdp1": moved_after(
            lambda net: FullyShardedDataParallel(net, auto_wrap_policy=policy, device_id=CPU, use_orig_params=False)
        ),
        "fsdp1, parameters kept": moved_after(lambda net: fsdp1(net)),
        "ddp": moved_after(DistributedDataParallel),
    }


def mixed_requires_grad() -> dict[str, str]:
    def wrap(keep: bool) -> object:
        net = Net()
        for layer in net.layers:
            layer.inner.bias.requires_grad_(False)
        policy = ModuleWrapPolicy({Block})
        return FullyShardedDataParallel(net, auto_wrap_policy=policy, device_id=CPU, use_orig_params=keep)

    return {"flat": raised(lambda: wrap(False)), "kept": raised(lambda: wrap(True))}


def hybrid_mesh() -> dict[str, str]:
    def wrap(shape: tuple[int, ...]) -> object:
        names = ("replicate", "shard")[: len(shape)]
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        return fsdp1(sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh)

    bare = lambda: FullyShardedDataParallel(  # noqa: E731
        Net(), device_id=CPU, sharding_strategy=ShardingStrategy.HYBRID_SHARD
    )
    return {"1": raised(lambda: wrap((2,))), "2": raised(lambda: wrap((1, 2))), "nothing given": raised(bare)}


def tied_apart() -> dict[str, str]:
    def run(together: bool) -> object:
        net = Net()
        net.head.weight = net.first.weight
        if not together:
            fully_shard(net.head)
        fully_shard(net)
        return net(data()).mean().backward()

    return {"apart": raised(lambda: run(False)), "together": raised(lambda: run(True))}


def policy_on_some() -> dict[str, str]:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)

    def run(blocks: bool, root: bool) -> object:
        net = Net()
        for layer in net.layers:
            fully_shard(layer, **({"mp_policy": policy} if blocks else {}))
        fully_shard(net, **({"mp_policy": policy} if root else {}))
        return net(data()).float().mean().backward()

    return {
        "root": raised(lambda: run(False, True)),
        "blocks": raised(lambda: run(True, False)),
        "both": raised(lambda: run(True, True)),
    }


def root_first() -> str:
    net = Net()
    fully_shard(net)
    return raised(lambda: fully_shard(net.layers[0]))


def root_left_out() -> float:
    """How far ranks are apart in the gradient of what is not sharded."""
    net = Net()
    for layer in net.layers:
        fully_shard(layer)
    net(data()).pow(2).mean().backward()
    return largest_difference(net.first.weight.grad)


def sampler_orders() -> dict[str, bool]:
    sampler = torch.utils.data.DistributedSampler(range(100))
    one, other = list(sampler), list(sampler)
    sampler.set_epoch(1)
    return {"same without": one == other, "same with": one == list(sampler)}


def shapes_of_fsdp1() -> list[int]:
    return sorted({p.ndim for p in fsdp1().parameters()})


def reentrant_behind_frozen() -> dict[str, bool]:
    """Whether blocks get gradients behind frozen embeddings, where something behind them is trained."""
    from torch.utils.checkpoint import checkpoint

    def run(reentrant: bool) -> bool:
        net = copy.deepcopy(Net())
        net.first.requires_grad_(False)
        x = checkpoint(net.layers[0], net.first(data()), use_reentrant=reentrant)
        net.head(x).mean().backward()
        return net.layers[0].inner.weight.grad is not None

    return {"reentrant": run(True), "not": run(False)}


CLAIMS = (
    ddp_reductions,
    ddp_no_sync_inverted,
    ddp_no_sync_right,
    fsdp2_lacks,
    fsdp2_sync_stays_off,
    norms,
    plain_scaler_on_fsdp1,
    optimizer_first,
    mixed_requires_grad,
    hybrid_mesh,
    tied_apart,
    policy_on_some,
    root_first,
    root_left_out,
    sampler_orders,
    shapes_of_fsdp1,
    reentrant_behind_frozen,
)


def main(rank: int, store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    sys.stdout.write(json.dumps({claim.__name__: claim() for claim in CLAIMS}) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
