"""Puts the parts together by moment of a steady step; parts that do not live together are not added."""

from dsgen.memory import backward, gradients, states
from dsgen.memory.activations.checkpointed import activations
from dsgen.memory.backward import Parts
from dsgen.memory.buffers import buffers
from dsgen.memory.fsdp1.moments import moments as fsdp1_moments
from dsgen.memory.fsdp2.moments import moments as fsdp2_moments
from dsgen.memory.gathered import Gathered
from dsgen.memory.ledger import Moment
from dsgen.memory.logits import around_the_blocks, logits
from dsgen.memory.megatron.moments import moments as megatron_moments
from dsgen.memory.plain.moments import moments as plain_moments
from dsgen.memory.setting import Setting
from dsgen.memory.temporaries import temporaries

_OWN = {"fsdp2": fsdp2_moments, "fsdp1": fsdp1_moments, "ddp": plain_moments, "megatron": megatron_moments}
"""Frameworks that don't keep states as DeepSpeed does."""


def moments(setting: Setting) -> tuple[Moment, ...]:
    """End of forward, backward, optimizer step; tensors only.

    The backward moment is the largest of: the loss's backward pass (all activations, logits and their gradients);
    every block's; the reduction at the end. The first step differs only in that Adam's states come into being in it,
    so it is never the largest.
    """
    own = _OWN.get(setting.target.format)
    if own is not None:
        return own(setting)
    always: Parts = {
        "parameters": states.parameters(setting),
        "master_weights": states.master_weights(setting),
        "optimizer_states": states.optimizer_states(setting),
    }
    layers, outside = activations(setting), around_the_blocks(setting)
    communication, gathered, loss = buffers(setting), Gathered(setting), logits(setting)
    # Between micro-batches the bucket stays: stage 1 fills it at the boundary only, and at stage 2 gradients
    # of other ranks' partitions are still views of it.
    held = communication.backward if setting.plan.accumulation > 1 else 0
    turn: Parts = always | {
        "gradients": gradients.resident(setting),
        "gathered_parameters": gathered.at_loss,
        "activations": layers.kept + outside,
        "buffers": communication.always + held,
    }
    after_loss = backward.candidates(setting, layers, outside, communication, gathered)
    step: Parts = always | {
        "gradients": gradients.stepping(setting),
        "gathered_parameters": gathered.persistent,
        "temporaries": temporaries(setting),
        "buffers": communication.always + communication.step,
    }
    return (
        _moment("end of forward", turn | {"logits": loss.forward}),
        _largest("backward", turn | {"logits": loss.backward}, *(always | parts for parts in after_loss)),
        _moment("optimizer step", step),
    )


def _moment(name: str, parts: Parts) -> Moment:
    return Moment(name, {part: size for part, size in parts.items() if size})


def _largest(name: str, *candidates: Parts) -> Moment:
    return _moment(name, max(candidates, key=lambda parts: sum(parts.values())))
