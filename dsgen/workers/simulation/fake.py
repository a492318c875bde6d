"""A process group of any size without other processes, and what training code does at its start that tensors without
contents can't."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.distributed._tools.fake_collectives  # shapes of what collectives return
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor._sharding_prop import ShardingPropagator

from dsgen.workers.simulation.tracker import Tracker


def join(world_size: int) -> None:
    """Rank 0 of a group whose collectives do nothing."""
    launched = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": world_size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
    os.environ.update({name: str(value) for name, value in launched.items()})
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())


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
    # Dropout's random state is not kept: it can't be read here, and takes a few bytes on the host.
    states: dict[str, Any] = {"get_rng_state": lambda *_: None, "set_rng_state": lambda *_: None}
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.UntypedStorage, "resize_", resized))
        for name in propagations:
            original = getattr(ShardingPropagator, name)
            stack.enter_context(patch.object(ShardingPropagator, name, tracker.suspending(original)))
        for owner in (torch, torch.random):
            stack.enter_context(patch.multiple(owner, **states))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(tracker)
        yield
