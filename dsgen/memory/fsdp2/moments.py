"""The moments of a step on one GPU under FSDP2, tensors only; the counterpart of dsgen/memory/moments.py."""

from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.fsdp2 import backward, states
from dsgen.memory.fsdp2.backward import Parts
from dsgen.memory.fsdp2.gathered import Gathered
from dsgen.memory.fsdp2.units import units_of
from dsgen.memory.ledger import Moment
from dsgen.memory.logits import around_the_blocks, logits
from dsgen.memory.setting import Setting


def moments(setting: Setting) -> tuple[Moment, ...]:
    """End of forward, backward, optimizer step.

    The backward moment is the largest of: the loss's backward pass; every block's; the reduction of the root at the
    end. Where FSDP2 offloads, shards, gradients and states are in host memory at all of them, except gradients that
    are kept whole between micro-batches: these never leave the GPU.
    """
    units = units_of(setting)
    gathered = Gathered(setting, units)
    always: Parts = {}
    step: Parts = {}
    if not setting.offloads_parameters:
        always = {
            "parameters": states.parameters(setting, units),
            "optimizer_states": states.optimizer_states(setting, units),
        }
        step = always | {
            "gradients": states.gradients(units),
            # The root is sharded again by then.
            "temporaries": states.step_temporaries(setting, units),
        }
    layers, outside, loss = activations(setting), around_the_blocks(setting), logits(setting)
    turn: Parts = always | {
        "gradients": backward.resident(setting, units),
        "gathered_parameters": gathered.at_loss,
        "activations": layers.kept + outside,
    }
    behind = backward.candidates(setting, layers, outside, gathered, units)
    return (
        _moment("end of forward", turn | {"logits": loss.forward}),
        _largest("backward", turn | {"logits": loss.backward}, *(always | parts for parts in behind)),
        _moment("optimizer step", step),
    )


def _moment(name: str, parts: Parts) -> Moment:
    return Moment(name, {part: size for part, size in parts.items() if size})


def _largest(name: str, *candidates: Parts) -> Moment:
    return _moment(name, max(candidates, key=lambda parts: sum(parts.values())))
