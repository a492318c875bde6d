"""RAM of one node under FSDP2: what is offloaded, or the making of the weights. Symbols as in states.py."""

from collections.abc import Mapping

from dsgen.memory.fsdp2 import states
from dsgen.memory.fsdp2.units import units_of
from dsgen.memory.layers import per_layer
from dsgen.memory.pinned import pinned
from dsgen.memory.setting import FP32, Setting
from dsgen.shapes.values import Tensor


def training(setting: Setting) -> Mapping[str, int]:
    """One rank's share while it trains with CPUOffloadPolicy(pin_memory=True); nothing without.

    Shards as in states.py and gradients 4 t, each tensor page-locked on its own (_fsdp_param.py:reset_sharded_param,
    _fsdp_collectives.py:foreach_reduce), states 4 o t in pageable memory.
    """
    if not setting.offloads_parameters:
        return {}
    return {
        "parameters": _locked(setting, trained_only=False),
        "gradients": _locked(setting, trained_only=True),
        "optimizer states": states.optimizer_states(setting, units_of(setting)),
    }


def loading(setting: Setting) -> int:
    """A node's share while weights are made. The generated decoder is filled on the GPU, module by module; a class of
    transformers, or what a factory makes, is made whole, 4 P, by rank 0."""
    whole = setting.target.loaded_by == "transformers" or setting.shapes.factory is not None
    return FP32 * setting.parameters if whole else 0


def _locked(setting: Setting, *, trained_only: bool) -> int:
    def of(tensors: tuple[Tensor, ...]) -> int:
        return sum(
            pinned(_width(setting, tensor) * -(-tensor.shape[0] // setting.shards) * (tensor.numel // tensor.shape[0]))
            for tensor in tensors
            if tensor.trainable or not trained_only
        )

    return sum(per_layer(setting.shapes, lambda block: of(block.tensors))) + of(setting.shapes.outside)


def _width(setting: Setting, tensor: Tensor) -> int:
    return FP32 if tensor.trainable else states.frozen_width(setting)
