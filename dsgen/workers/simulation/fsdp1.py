"""FSDP1: FullyShardedDataParallel, each block a unit."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch.distributed.device_mesh import init_device_mesh

from dsgen.workers.simulation.checkpointing import wrap
from dsgen.workers.simulation.model import TYPES
from dsgen.workers.simulation.plain import Plain


class Fsdp1(Plain):
    """With original parameters, as Lightning, Composer and transformers use it."""

    def make_mesh(self) -> Any:
        world, group = self.request["world_size"], self.request["shard_group"]
        if group is None:
            return None
        return init_device_mesh("cpu", (world // group, group), mesh_dim_names=("replicate", "shard"))

    @contextmanager
    def patches(self) -> Iterator[None]:
        from torch.distributed.fsdp import _common_utils, _flat_param, _init_utils, _runtime_utils
        from torch.distributed.fsdp import fully_sharded_data_parallel as fsdp1

        def with_stub(state: Any, *_: Any) -> Any:
            state._device_handle = _NoDevice
            return state

        handle = _flat_param.FlatParamHandle
        replacements: list[tuple[Any, str, Any]] = [
            (fsdp1, "_init_device_handle", with_stub),
            (_init_utils, "_init_device_handle", with_stub),
            (torch.Tensor, "record_stream", lambda *_: None),
            (_common_utils._FSDPDeviceHandle, "from_device", classmethod(lambda *_: _NoDevice)),
            # Tensors without contents have no addresses.
            (_flat_param, "_data_ptr_allocated", lambda tensor: tensor.untyped_storage().size() > 0),
            (_flat_param, "_same_storage", _same_storage),
            (handle, "unshard", self.tracker.of("gathered_parameters", handle.unshard)),
            (_runtime_utils, "_reduce_grad", self.tracker.of("buffers", _runtime_utils._reduce_grad)),
        ]
        with ExitStack() as stack:
            for owner, name, value in replacements:
                stack.enter_context(patch.object(owner, name, value))
            yield

    def lay_out(self, model: Any) -> Any:
        from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        block = type(model.layers[0])
        wrap(model.layers, self.request)
        compute = TYPES[self.request["precision"]]
        mixed = compute is not torch.float32 and self.request["stored"] == "fp32" and not self.request["autocast"]
        return FullyShardedDataParallel(
            model,
            auto_wrap_policy=ModuleWrapPolicy({block}),
            sharding_strategy=getattr(ShardingStrategy, self.request["strategy"]),
            mixed_precision=MixedPrecision(param_dtype=compute, reduce_dtype=compute, buffer_dtype=compute)
            if mixed
            else None,
            device_mesh=self.mesh,
            device_id=torch.device("cpu"),
            use_orig_params=True,
        )

    def name_gradients(self) -> None:
        for handle in _handles(self.model):
            if handle.flat_param.requires_grad:
                self.tracker.gradients_of(handle.flat_param)

    def micro_batch(self, last: bool) -> AbstractContextManager[Any]:
        held: AbstractContextManager[Any] = self.model.no_sync()
        return nullcontext() if last or self.request["reduce_each"] else held

    def clip(self) -> None:
        self.model.clip_grad_norm_(self.request["clipping"])


def _same_storage(one: Any, other: Any) -> bool:
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)


def _handles(model: Any) -> Iterator[Any]:
    for module in model.fsdp_modules(model):
        if module._handle is not None:
            yield module._handle


class _NoDevice:
    """A device without streams, for FSDP1, which has none for the CPU."""

    class Stream:
        def __init__(self, *_: Any, **__: Any) -> None: ...
        def wait_stream(self, _: Any) -> None: ...
        def wait_event(self, _: Any) -> None: ...
        def record_event(self, *_: Any) -> Any:
            return _NoDevice.Event()

        def synchronize(self) -> None: ...

    class Event:
        def __init__(self, *_: Any, **__: Any) -> None: ...
        def record(self, *_: Any) -> None: ...
        def wait(self, *_: Any) -> None: ...
        def synchronize(self) -> None: ...

        def query(self) -> bool:
            return True

    @staticmethod
    def current_stream(*_: Any) -> Any:
        return _NoDevice.Stream()

    @staticmethod
    def stream(_: Any) -> Any:
        return nullcontext()

    @staticmethod
    def current_device() -> Any:
        return torch.device("cpu")

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def synchronize(*_: Any) -> None: ...
