"""What torch.optim makes for the time of its step."""

from dsgen.memory import frozen
from dsgen.memory.setting import Setting


def step_temporaries(setting: Setting, stepped: int) -> int:
    """Adam over ``stepped`` parameters of w bytes: with foreach one temporary of each, w (torch/optim/adam.py:
    _multi_tensor_adam takes the square roots of all second moments at once); fused or one by one none. SGD as in
    optimizers.csv."""
    w, optimizer = frozen.trained_width(setting), setting.training.optimizer
    temporaries = setting.optimizer.stepping(optimizer.weight_decay)
    if optimizer.step == "foreach" and setting.optimizer.states:
        temporaries += 1
    return w * temporaries * stepped
