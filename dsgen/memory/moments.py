"""Puts the parts together by moment of a steady step; parts that do not live together are not added."""

from collections.abc import Iterator

from dsgen.memory import gathered as gather
from dsgen.memory import gradients as grads
from dsgen.memory import states
from dsgen.memory.activations.checkpointed import LayerActivations, activations
from dsgen.memory.buffers import buffers
from dsgen.memory.layers import per_layer
from dsgen.memory.ledger import Moment, Part
from dsgen.memory.logits import around_the_blocks, logits
from dsgen.memory.setting import Setting
from dsgen.memory.temporaries import temporaries
from dsgen.shapes.values import Block

Parts = dict[Part, int]


def moments(setting: Setting) -> tuple[Moment, ...]:
    """End of forward, backward, optimizer step, tensors only.

    The backward moment is the largest of: the loss's backward pass (all activations, logits and their
    gradients); every block's (activations up to it, what is recomputed of it, gradients of what lies
    behind); the reduction at its end. The first step differs only in that Adam's states
    come into being in it, so it is never the largest.
    """
    always: Parts = {
        "parameters": states.parameters(setting),
        "master_weights": states.master_weights(setting),
        "optimizer_states": states.optimizer_states(setting),
    }
    layers = activations(setting)
    outside = around_the_blocks(setting)
    kept = sum(layer.kept for layer in layers) + outside
    communication = buffers(setting)
    turn = _Gathered(setting)
    loss = logits(setting)

    forward: Parts = always | {
        "gradients": grads.resident(setting),
        "gathered_parameters": turn.at_loss,
        "activations": kept,
        "logits": loss.forward,
        # Between micro-batches stages 1 and 2 keep the bucket of the one before.
        "buffers": communication.always,
    }
    candidates = [
        always
        | {
            "gradients": grads.resident(setting),
            "gathered_parameters": turn.at_loss,
            "activations": kept,
            "logits": loss.backward,
            "buffers": communication.always,
        },
        *(always | parts for parts in _blocks_backward(setting, layers, outside, turn)),
        always
        | {
            "gradients": grads.reducing(setting) if setting.stage == 1 else _all_gradients(setting),
            "gathered_parameters": turn.persistent,
            "buffers": communication.always + communication.backward + communication.reducing,
        },
    ]
    step: Parts = always | {
        "gradients": grads.stepping(setting),
        "gathered_parameters": turn.persistent,
        "temporaries": temporaries(setting),
        "buffers": communication.always,
    }
    return (
        _moment("end of forward", forward),
        _moment("backward", max(candidates, key=lambda parts: sum(parts.values()))),
        _moment("optimizer step", step),
    )


def _moment(name: str, parts: Parts) -> Moment:
    return Moment(name, {part: size for part, size in parts.items() if size})


def _all_gradients(setting: Setting) -> int:
    return grads.inside_backward(setting, setting.trainable, 0)


def _blocks_backward(
    setting: Setting, layers: list[LayerActivations], outside: int, turn: "_Gathered"
) -> Iterator[Parts]:
    """Each block's backward pass, last block first. Only the largest is yielded."""
    blocks = setting.shapes.blocks
    largest = per_layer(blocks, _largest_trainable)
    computed = sum(tensor.numel for tensor in setting.shapes.outside if tensor.trainable)
    before = sum(layer.kept for layer in layers) + outside
    communication = buffers(setting)
    reduces = setting.stage >= 2 or (setting.stage == 1 and setting.plan.overlaps)
    working = communication.always + (communication.backward if setting.stage else 0)
    working += communication.reducing if reduces else 0
    best: Parts = {}
    best_size = -1
    for index in range(len(blocks) - 1, -1, -1):
        layer = layers[index]
        computed += blocks[index].trainable
        gradients = grads.inside_backward(setting, computed, largest[index])
        live = turn.at_block(index)
        size = before + layer.extra + gradients + live
        if size > best_size:
            best_size = size
            best = {
                "gradients": gradients,
                "gathered_parameters": live,
                "activations": before + layer.extra,
                "buffers": working,
            }
        before -= layer.kept
    if best:
        yield best


def _largest_trainable(block: Block) -> int:
    return max((tensor.numel for tensor in block.tensors if tensor.trainable), default=0)


class _Gathered:
    """Bytes of gathered parameters at each point of the backward pass; all zero below stage 3."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._blocks = setting.shapes.blocks
        self._on = gather.gathers(setting)
        self.persistent = self._bytes(gather.persistent(setting)) if self._on else 0
        self._first = len(self._blocks)
        self._kept_before: list[int] = []
        self.at_loss = 0
        if not self._on:
            return
        head = (
            sum(tensor.numel for tensor in setting.shapes.outside)
            if setting.shapes.architecture.tied
            else (max((tensor.numel for tensor in setting.shapes.outside), default=0))
        )
        self._first, live = gather.kept_over_the_turn(self._blocks, head, setting.plan.buckets.max_reuse_distance)
        self.at_loss = self.persistent + self._bytes(live + gather.prefetched(setting, live))
        total = 0
        for block in self._blocks[self._first :]:
            total += block.parameters
            self._kept_before.append(total)

    def at_block(self, index: int) -> int:
        """While block ``index`` runs backwards: itself, those before it that were kept over the turn, prefetch."""
        if not self._on:
            return 0
        kept = index - self._first
        live = self._kept_before[kept] if kept >= 0 else self._blocks[index].parameters
        return self.persistent + self._bytes(live + gather.prefetched(self._setting, live))

    def _bytes(self, elements: int) -> int:
        return self._setting.width * elements
