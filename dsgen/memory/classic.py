"""The textbook account of model states: 2 + 2 + 12 bytes a parameter, sharded by stage.

ZeRO paper (arXiv 1910.02054, sections 3.1 and 5, figure 1): mixed-precision Adam keeps fp16 weights (2 bytes), fp16
gradients (2) and K = 12 for the optimizer: fp32 weights, momentum, variance. With P parameters and N ranks a GPU
holds, for P = 7e9 and N = 8 (GB = 1e9):

    stage 0   (2 + 2 + K) P            112 GB
    stage 1   (2 + 2) P + K P / N      38.5 GB
    stage 2   2 P + (2 + K) P / N      26.25 GB
    stage 3   (2 + 2 + K) P / N        14 GB

Often copied beside "7B on 8 GPUs" are 28, 16 and 2 GB. None of them belongs to 8 GPUs. 28 GB is stage 1 with
N without bound, (2 + 2) P: the optimizer's 10.5 GB are left out. 16 GB at stage 2 takes 49 GPUs and 2 GB at
stage 3 takes 56. The likeliest origin is the paper's figure 1, which is for 7.5e9 parameters on 64 GPUs:
31.4, 16.6 and 1.9 GB.
"""

from dsgen.memory.ledger import StatesClassic
from dsgen.memory.setting import Setting

_WEIGHT = 2
_GRADIENT = 2
_OPTIMIZER = 12


def states_classic(setting: Setting) -> StatesClassic:
    """Per GPU, by the number of parameters that the user stated, if they stated nothing else.

    Frozen weights (LoRA) cost 2 bytes and no gradient or state. fp32 training and optimizers other than Adam are
    not the textbook's case: the account stays the same and is meant for comparison only.
    """
    shapes, stage = setting.shapes, setting.stage
    trainable = shapes.trainable
    total = shapes.parameters
    if shapes.stated_parameters is not None and trainable == total:
        trainable = total = shapes.stated_parameters
    n = setting.shards
    return StatesClassic(
        parameters=_WEIGHT * total / (n if stage >= 3 else 1),
        gradients=_GRADIENT * trainable / (n if stage >= 2 else 1),
        optimizer=_OPTIMIZER * trainable / (n if stage >= 1 else 1),
    )
