"""What FSDP2 keeps of parameters and optimizer on one GPU, or in host memory where it offloads.

Symbols: p, t elements of a rank's shard, of all and of the trained parameters; o states per parameter (Adam 2).
Shards of trained weights are fp32 whatever the compute type is, so there are no master weights beside them.
"""

from dsgen.legality.frozen import keeps_frozen_in_16_bit
from dsgen.memory.fsdp2.units import ModelUnits
from dsgen.memory.setting import FP32, Setting


def parameters(setting: Setting, units: ModelUnits) -> int:
    """4 t bytes, and as many or c for each frozen element."""
    return FP32 * units.trainable_shard + frozen_width(setting) * (units.shard - units.trainable_shard)


def frozen_width(setting: Setting) -> int:
    """Bytes of a frozen element: c where torch can keep it in the compute type, else 4."""
    return setting.width if keeps_frozen_in_16_bit(setting.target) else FP32


def gradients(units: ModelUnits) -> int:
    """4 t bytes, once reduced: gradients get the parameters' type (_fsdp_collectives.py:foreach_reduce)."""
    return FP32 * units.trainable_shard


def optimizer_states(setting: Setting, units: ModelUnits) -> int:
    """4 o t bytes."""
    return FP32 * setting.optimizer.kept(setting.training.optimizer.momentum) * units.trainable_shard


def step_temporaries(setting: Setting, units: ModelUnits) -> int:
    """AdamW and Adam are written fused and make none; SGD is not, and with weight decay copies the gradients: 4 t
    (dsgen/formats/fsdp2/optimizer.py; torch/optim/sgd.py:_multi_tensor_sgd)."""
    return FP32 * setting.optimizer.stepping(setting.training.optimizer.weight_decay) * units.trainable_shard
