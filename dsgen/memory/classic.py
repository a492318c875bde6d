"""The textbook account of model states: 2 + 2 + 12 bytes a parameter, sharded by stage.

ZeRO paper (arXiv 1910.02054, sections 3.1 and 5): mixed-precision Adam keeps fp16 weights (2), fp16 gradients (2), and
K = 12 of optimizer: fp32 weights, momentum, variance. With Psi parameters and N ranks a GPU holds

    stage 0   (2 + 2 + K) Psi               112 GB for 7e9 parameters
    stage 1   (2 + 2) Psi + K Psi / N        38.5 GB on 8 GPUs
    stage 2   2 Psi + (2 + K) Psi / N        26.25 GB
    stage 3   (2 + 2 + K) Psi / N            14 GB

(GB = 1e9). Often copied for "7B on 8 GPUs" are 28, 16 and 2 GB. They are not figures for 8 GPUs:
28 = (2 + 2) 7 and 14 + ... are what is left when N grows without bound, (2 + 2) Psi = 28 for stage 1 and
2 Psi = 14 for stage 2; 16 and 2 belong to the paper's table of 7.5e9 parameters on N = 64,
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
