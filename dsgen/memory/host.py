"""RAM of one node: processes, offloaded states, pinned buffers, or the loading of the weights.

Symbols as in states.py; sizes of one rank times the ranks of a node. Read in deepspeed 0.19.8.
"""

from collections.abc import Mapping
from math import ceil

from dsgen.facts.constants import constant
from dsgen.memory import states
from dsgen.memory.fsdp2 import host as fsdp2_host
from dsgen.memory.pinned import pinned
from dsgen.memory.setting import FP32, Setting


def host_per_node(setting: Setting) -> Mapping[str, int]:
    """Named parts whose sum a node's RAM must hold.

    Loading the weights and training do not happen together: of the two sets of parts the larger stands
    here, beside the processes.
    """
    ranks = setting.ranks_per_node
    processes = {"processes": int(constant("host_process")) * ranks}
    fsdp2 = setting.target.format == "fsdp2"
    trained = fsdp2_host.training(setting) if fsdp2 else _training(setting)
    training = {name: size * ranks for name, size in trained.items() if size}
    whole = fsdp2_host.loading(setting) if fsdp2 else _loading(setting) * ranks
    loading = {"weights while loading": whole} if whole else {}
    return processes | max(training, loading, key=lambda parts: sum(parts.values()))


def _loading(setting: Setting) -> int:
    """One rank while weights are loaded, before they are on the GPU.

    Below stage 3 every rank holds the whole model, c P. At stage 3 modules are built sharded (zero.Init), and each rank
    reads one checkpoint file at a time, whole.
    """
    whole = setting.width * setting.parameters
    return min(whole, int(constant("loading_shard"))) if setting.stage == 3 else whole


def _training(setting: Setting) -> dict[str, int]:
    return _optimizer(setting) | _parameters(setting)


def _optimizer(setting: Setting) -> dict[str, int]:
    """One rank's share of an offloaded optimizer.

    cpu: master weights 4 T / N, states, gradients 4 T / N in fp32, and in the model's type
      - stages 1 and 2: the updated weights before they go to the GPU, c T / N, the gradient of the largest tensor, and
        gradients c T / N when micro-batches accumulate, unless they do so in fp32, on the GPU
        (zero/stage_1_and_2.py: param_buffer_of_bit16_for_cpu_offload_groups, temp_grad_buffer_for_cpu_offload,
        accumulated_grads_in_cpu);
      - stage 3: gradients g T / N always, in the type in which they are added up
        (zero/stage3.py:grad_partitions_flat_buffer on self.device).
    nvme (stage 3): swap buffers of one sub-group in fp32, optimizer_buffers of them, instead of masters, states and
    fp32 gradients (swap_tensor/utils.py:SwapBufferManager; locked by DeepSpeed itself, so not rounded); gradients
    g T / N as before.
    """
    if not setting.offloads_optimizer:
        return {}
    shard, c, g = setting.trainable_shard, setting.width, setting.sum_width
    if setting.plan.offload_optimizer == "nvme":
        return {
            "optimizer swap buffers": setting.plan.swap.optimizer_buffers * FP32 * setting.sub_group,
            "gradients": _pinned(setting, g * shard),
        }
    states_size = states.optimizer_state_bytes(setting)
    if setting.stage == 3:
        return {
            "master weights": FP32 * states.master_elements(setting),
            "optimizer states": states_size,
            "fp32 gradients": sum(_pinned(setting, FP32 * group) for group in setting.sub_groups),
            "gradients": _pinned(setting, g * shard),
        }
    accumulated = c * shard if setting.plan.accumulation > 1 and not setting.plan.sums_apart else 0
    return {
        "master weights": _pinned(setting, FP32 * states.master_elements(setting)),
        "optimizer states": states_size,
        "fp32 gradients": _pinned(setting, FP32 * shard),
        "updated weights": _pinned(setting, c * shard),
        "gradients": accumulated + _pinned(setting, c * setting.shapes.largest_tensor),
    }


def _parameters(setting: Setting) -> dict[str, int]:
    """One rank's share of offloaded weights (stage 3).

    cpu: c (T + F) / N. nvme: a pool of parameter_buffers x parameter_buffer_size elements
    (swap_tensor/partitioned_param_swapper.py:_configure_aio), up to max_in_cpu elements that stay in RAM, and, if not
    all do, a buffer of one sub-group for writing them back (reserve_partitioned_swap_space); c bytes each.
    """
    if not setting.offloads_parameters:
        return {}
    c, swap = setting.width, setting.plan.swap
    shard = ceil(setting.parameters / setting.shards)
    if setting.plan.offload_parameters == "cpu":
        frozen = c * ceil(setting.frozen / setting.shards)
        return {"parameters": _pinned(setting, c * setting.trainable_shard) + frozen}
    in_cpu = min(swap.max_in_cpu, shard)
    return {
        "parameter swap buffers": c * swap.parameter_buffers * swap.parameter_buffer_size,
        "parameters": c * in_cpu,
        "parameter write buffer": c * setting.sub_group if in_cpu < shard else 0,
    }


def _pinned(setting: Setting, size: int) -> int:
    """A tensor that is page-locked where the plan says so."""
    return pinned(size) if setting.plan.swap.pin_memory else size
