"""FSDP2: fully_shard, by the module that build writes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from torch.distributed.device_mesh import init_device_mesh

from dsgen.workers.modules import load_file
from dsgen.workers.simulation.checkpointing import every_second
from dsgen.workers.simulation.plain import Plain


class Fsdp2(Plain):
    """Every block is a unit, and the root with what is outside."""

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
        if self.request["every_second_product"]:
            written.create_selective_checkpoint_contexts = every_second
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
