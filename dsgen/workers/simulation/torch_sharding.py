"""A model under FSDP2, FSDP1 or DDP, as training code lays it out."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from dsgen.workers.modules import load_file
from dsgen.workers.simulation.model import LOSSES, TYPES
from dsgen.workers.simulation.tracker import Tracker

Json = Mapping[str, Any]


class Plain:
    """The model by itself; DDP's buckets are arithmetic."""

    def __init__(self, tracker: Tracker, request: Json) -> None:
        self.tracker, self.request = tracker, request
        self.model: Any = None
        self.optimizer: Any = None
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
            if outside is None or self.request["loss_inside"]:
                return self.model(tokens, tokens)
            return outside(self.model(tokens), tokens)

    def backward(self, loss: Any) -> None:
        loss.backward()

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


class Fsdp2(Plain):
    """fully_shard, by the module that build writes where there is one."""

    def make_mesh(self) -> Any:
        world, group = self.request["world_size"], self.request["shard_group"]
        if group is None:
            return init_device_mesh("cpu", (world,), mesh_dim_names=("shard",))
        return init_device_mesh("cpu", (world // group, group), mesh_dim_names=("replicate", "shard"))

    @contextmanager
    def patches(self) -> Iterator[None]:
        from torch.distributed.fsdp._fully_shard import _fsdp_param, _fsdp_param_group

        groups: Any = _fsdp_param_group
        group, reduce = groups.FSDPParamGroup, groups.foreach_reduce

        def reduced(params: Any, *args: Any, **kwargs: Any) -> Any:
            with self.tracker.making("buffers"):
                result = reduce(params, *args, **kwargs)
            for param in params:
                if param.sharded_param.grad is not None:
                    self.tracker.retag(param.sharded_param.grad, "gradients")
            return result

        unsharded: Any = _fsdp_param.FSDPParam.init_unsharded_param

        def named(param: Any) -> None:
            before = getattr(param, "_unsharded_param", None)
            unsharded(param)
            if before is None and param._unsharded_param.requires_grad:
                self.tracker.gradients_of(param._unsharded_param)

        with ExitStack() as stack:
            stack.enter_context(patch.object(_fsdp_param.FSDPParam, "init_unsharded_param", named))
            for name in ("unshard", "wait_for_unshard"):
                gathering = self.tracker.of("gathered_parameters", getattr(group, name))
                stack.enter_context(patch.object(group, name, gathering))
            stack.enter_context(patch.object(groups, "foreach_reduce", reduced))
            yield

    def lay_out(self, model: Any) -> Any:
        written = load_file(self.request["sharding"], "dsgen_simulated_sharding")
        written.shard(model, self.mesh, model.layers)
        return model

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        each = self.request["reduce_each"]
        self.model.set_requires_gradient_sync(last or each)
        if self.request["shard_group"] is not None and each:
            self.model.set_requires_all_reduce(last)
        if self.request["stage"] == 2:
            self.model.set_reshard_after_backward(last)
        yield


class Fsdp1(Plain):
    """FullyShardedDataParallel with each block a unit."""

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
        _checkpoint(model.layers, self.request)
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


def _checkpoint(blocks: Any, request: Json) -> None:
    """Wrappers inside the units, as every guide to FSDP has them."""
    from functools import partial

    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    kind, every = request["checkpointing"]
    if kind == "none":
        return
    more: dict[str, Any] = {}
    if kind == "selective":
        keep = load_file(request["model"]).keep
        more["context_fn"] = partial(create_selective_checkpoint_contexts, keep)
    for index in range(0, len(blocks), every if kind == "every" else 1):
        blocks[index] = checkpoint_wrapper(blocks[index], **more)
