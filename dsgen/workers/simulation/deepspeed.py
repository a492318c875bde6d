"""A real DeepSpeed engine, stages 0 to 3, on tensors without contents."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import deepspeed
import torch
from deepspeed.ops.op_builder.cpu import FusedAdamBuilder
from deepspeed.runtime.zero import partition_parameters, partitioned_param_coordinator, stage_1_and_2
from torch import nn

from dsgen.workers.simulation.plain import Plain


class DeepSpeed(Plain):
    """The engine of the config, with the decoder's own checkpointing."""

    engine: Any

    def make_mesh(self) -> None:
        # Its shared-memory collectives are C++ that takes a minute to build.
        with patch.object(sys.modules["deepspeed.comm.torch"], "build_shm_op", lambda: None):
            deepspeed.init_distributed(dist_init_required=False)

    @contextmanager
    def patches(self) -> Iterator[None]:
        gathering, reducing = "gathered_parameters", "buffers"
        coordinator = partitioned_param_coordinator.PartitionedParameterCoordinator
        zero12 = stage_1_and_2.DeepSpeedZeroOptimizer
        of = self.tracker.of
        replacements: list[tuple[Any, str, Any]] = [
            (nn.Module, "_apply", _apply),
            (coordinator, "fetch_sub_module", of(gathering, coordinator.fetch_sub_module)),
            (zero12, "reduce_ipg_grads", of(reducing, zero12.reduce_ipg_grads)),
            (zero12, "setup_buckets", of(reducing, zero12.setup_buckets)),
            # Its kernel writes in place; what is around it runs.
            (FusedAdamBuilder, "load", lambda *_, **__: SimpleNamespace(multi_tensor_adam=lambda *_: None)),
        ]
        # What other ranks say is whatever a collective left there.
        for owner in (deepspeed.runtime.zero.utils, partitioned_param_coordinator, partition_parameters):
            for name in ("assert_lst_len_same_as_other_ranks", "assert_ints_same_as_other_ranks"):
                if hasattr(owner, name):
                    replacements.append((owner, name, lambda *_: None))
        with ExitStack() as stack:
            for owner, name, value in replacements:
                stack.enter_context(patch.object(owner, name, value))
            yield

    def prepare(self, model: Any) -> None:
        kind, every = self.request["checkpointing"]
        if kind != "none":
            model.enable_checkpointing(kind, every)
        config = json.loads(Path(self.request["config"]).read_text(encoding="utf-8"))
        config.pop("scheduler", None)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.engine, self.optimizer, *_ = deepspeed.initialize(
            model=model,
            model_parameters=trained,
            config=config,
            dist_init_required=False,
        )
        self.model = self.engine.module
        self.name_gradients()

    def loss(self, tokens: Any) -> Any:
        return self.engine(tokens, tokens)

    def backward(self, loss: Any) -> None:
        self.engine.backward(loss)
        if not self.engine.is_gradient_accumulation_boundary():
            self.engine.step()  # counts the micro-batch

    def step(self) -> None:
        self.engine.step()

    def zero(self) -> None:
        """The engine's step does it."""

    def states(self) -> Iterator[tuple[Any, str]]:
        for parameter in self.model.parameters():
            yield getattr(parameter, "ds_tensor", parameter).detach(), "parameters"
            if parameter.grad is not None:
                yield parameter.grad, "gradients"
        yield from _of_optimizer(self.optimizer)


def _of_optimizer(optimizer: Any) -> Iterator[tuple[Any, str]]:
    """DeepSpeed's wrapper, and the torch optimizer that steps the masters."""
    for name in ("fp32_partitioned_groups_flat", "single_partition_of_fp32_groups", "fp32_groups_flat_partition"):
        for tensor in getattr(optimizer, name, ()):
            yield tensor.detach(), "master_weights"
            if tensor.grad is not None:
                yield tensor.grad, "temporaries"
    flat = getattr(optimizer, "fp32_groups_flat", ())
    for tensor in flat if isinstance(flat, list) else ():
        yield tensor.detach(), "master_weights"
    flat = getattr(optimizer, "grad_partitions_flat_buffer", None)
    if isinstance(flat, torch.Tensor):
        yield flat, "gradients"
    for partition in getattr(optimizer, "averaged_gradients", {}).values():
        for tensor in partition or ():
            yield tensor, "gradients"
    for bucket in getattr(optimizer, "ipg_buckets", {}).values():
        held = bucket.buffer if isinstance(bucket.buffer, list) else [bucket.buffer]
        for tensor in held:
            if isinstance(tensor, torch.Tensor):
                yield tensor, "buffers"
    inner = getattr(optimizer, "optimizer", optimizer)
    for state in getattr(inner, "state", {}).values():
        for value in state.values() if isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor):
                yield value, "optimizer_states"


def _apply(module: nn.Module, change: Any, recurse: bool = True) -> nn.Module:
    """nn.Module._apply without torch's swap of tensors, which those without contents refuse."""
    if recurse:
        for child in module.children():
            _apply(child, change)
    for name, parameter in module._parameters.items():
        if parameter is None:
            continue
        changed = change(parameter.detach())
        if changed.dtype is not parameter.dtype:
            module._parameters[name] = nn.Parameter(changed, parameter.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = change(buffer)
    return module
