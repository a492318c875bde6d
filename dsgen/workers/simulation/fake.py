"""A process group of any size without other processes, and what training code does at its start that tensors without
contents can't."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.distributed._tools.fake_collectives  # shapes of what collectives return
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.utils._python_dispatch import _disable_current_modes

from dsgen.workers.simulation.tracker import Tracker


def join(rank: int, world_size: int) -> None:
    """One rank of a group whose collectives do nothing."""
    ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size)}
    os.environ.update(ranks | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"})
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=world_size, store=FakeStore())


@contextmanager
def simulation(tracker: Tracker) -> Iterator[None]:
    """Tensors have no contents, and the tracker sees them."""
    resize = torch.UntypedStorage.resize_

    def resized(storage: Any, size: int) -> Any:
        result = resize(storage, size)
        tracker.resized(storage)
        return result

    # DTensor works out shapes by running an operator on tensors of the global shape, which nobody allocates.
    propagations = [name for name in dir(ShardingPropagator) if name.startswith("_propagate_tensor_meta")]
    # Meshes are sliced by looking where in them the rank is; their tensors have contents.
    slices = [name for name in ("__getitem__", "_concatenate", "_flatten") if hasattr(DeviceMesh, name)]
    # Dropout's random state is not kept: it can't be read here, and takes a few bytes on the host.
    states: dict[str, Any] = {"get_rng_state": lambda *_: None, "set_rng_state": lambda *_: None}
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.UntypedStorage, "resize_", resized))
        for name in propagations:
            original = getattr(ShardingPropagator, name)
            stack.enter_context(patch.object(ShardingPropagator, name, tracker.suspending(original)))
        for name in slices:
            stack.enter_context(patch.object(DeviceMesh, name, _outside(getattr(DeviceMesh, name))))
        for owner in (torch, torch.random):
            stack.enter_context(patch.multiple(owner, **states))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(tracker)
        yield


def _outside(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, on tensors with contents."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return function(*args, **kwargs)

    return wrapped
