"""What a step time takes for granted because nobody stated it."""

from dsgen.facts.constants import constant
from dsgen.steptime.links import network_of
from dsgen.steptime.setting import Setting


def assumptions(setting: Setting) -> tuple[str, ...]:
    """In sentences for the user."""
    hardware, gpu = setting.hardware, setting.hardware.gpu
    found = []
    fast = gpu.link_domain or hardware.gpus_per_node
    if hardware.inter_node_gbit_s is None and setting.plan.world_size > fast:
        network = network_of(hardware)
        found.append(f"the network is not stated: {network:g} Gbit/s a node are assumed, as in reference nodes with it")
    if setting.machine.peak is None:
        known = gpu.fp32_tflops or gpu.fp16_tflops
        rate = f"{known:g} TFLOPS of another" if known else f"{constant('unknown_tflops'):g} TFLOPS"
        found.append(f"the GPU's speed in this type is not stated: {rate} are assumed")
    if gpu.memory_gb_s is None:
        assumed = constant("unknown_memory_gb_s")
        found.append(f"the GPU's memory bandwidth is not stated: {assumed:g} GB/s are assumed")
    return tuple(found)
