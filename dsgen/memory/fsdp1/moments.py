"""The moments of a step on one GPU under FullyShardedDataParallel (FSDP1), tensors only.

Read in torch 2.13, torch/distributed/fsdp/: _flat_param.py, _runtime_utils.py. A unit (each block, and the root with
what is outside) is one flat parameter. Symbols: N shards, w bytes of one trained weight as stored, c of a compute
element, o states per parameter (Adam 2).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from dsgen.memory import frozen
from dsgen.memory.activations.checkpointed import Activations, activations
from dsgen.memory.activations.points import points
from dsgen.memory.derived import derived
from dsgen.memory.layers import per_layer, turning_points
from dsgen.memory.ledger import Moment
from dsgen.memory.logits import around_the_blocks, held, logits
from dsgen.memory.parts import Parts, largest, moment
from dsgen.memory.plain.step import step_temporaries
from dsgen.memory.setting import Setting
from dsgen.shapes.values import Block


def moments(setting: Setting) -> tuple[Moment, ...]:
    """End of forward, backward, optimizer step.

    - Always: shards of the weights as stored, and w o t states.
    - Gradients: sharded, w t, as they are reduced; with accumulation whole, c T, from the second micro-batch on
      (no_sync keeps unsharded gradients in the compute type), unless every micro-batch is reduced.
    """
    w, shards = frozen.trained_width(setting), setting.shards
    shard = ceil(setting.trainable / shards)
    size = setting.optimizer.state_size(w, setting.training.optimizer.momentum)
    blocks, root = frozen.blocks_stored(setting), frozen.outside_stored(setting)
    weights = 0 if setting.offloads_parameters else ceil((sum(blocks) + root) / shards)
    states = 0 if setting.offloads_parameters or setting.offloads_optimizer else round(size * shard)
    always: Parts = {"parameters": weights, "optimizer_states": states}
    layers, outside, loss = activations(setting), around_the_blocks(setting), logits(setting)
    whole = 0
    if setting.plan.accumulation > 1:
        units, each_reduced = _with_gradient(setting), setting.plan.reduce_each_micro_batch
        whole = w * shard if each_reduced else setting.width * (sum(units.blocks) + units.root)
    gathered = Gathered(setting)
    turn: Parts = always | {
        "gradients": whole,
        "gathered_parameters": gathered.at_loss + frozen.dequantized(setting, setting.shapes.outer),
        "activations": layers.kept + outside,
    }
    behind = (always | parts | {"logits": held(setting)} for parts in _backward(setting, layers, whole, gathered))
    gradients = 0 if setting.offloads_parameters else w * shard
    step: Parts = always | {"gradients": gradients, "temporaries": step_temporaries(setting, shard)}
    if setting.offloads_parameters:
        step = {}
    return (
        moment("end of forward", turn | {"logits": loss.forward}),
        largest("backward", turn | {"logits": loss.backward}, *behind),
        moment("optimizer step", step),
    )


class Gathered:
    """Bytes of gathered units: the root from the first forward to the last backward pass; a block that computes and the
    one fetched ahead (forward_prefetch off, backward_prefetch before the gradients are reduced).

    With NO_SHARD, stage 0, nothing is gathered; but where trained weights are wider than the compute type the root and
    the block that computes are cast, c each (_flat_param.py:_use_low_precision_shard)."""

    def __init__(self, setting: Setting) -> None:
        self._stays, self._sharded = setting.stage == 2, setting.stage > 0
        unit = _unit if self._sharded else _cast
        self.root = round(unit(setting, setting.shapes.outer))
        self.block = round(max((unit(setting, block) for block in setting.shapes.blocks[:1]), default=0))
        self._layers = len(setting.shapes.blocks)

    @property
    def at_loss(self) -> int:
        """Where the passes meet: the last block is not sharded again before its backward pass."""
        return self.root + self.block * (self._layers if self._stays else int(self._sharded))

    def at_block(self, index: int) -> int:
        """While block ``index`` runs backwards."""
        blocks = index + 1 if self._stays else 2 if index and self._sharded else 1
        return self.root + self.block * blocks


def _unit(setting: Setting, block: Block) -> float:
    """A gathered unit: trained weights and unquantised frozen ones in the compute type, quantised ones as stored."""
    if setting.training.method.quantization is None:
        return setting.width * block.parameters
    return sum(
        frozen.stored(setting, t) if frozen.quantized(setting, t) else setting.width * t.numel for t in block.tensors
    )


def _cast(setting: Setting, block: Block) -> float:
    narrow = setting.training.code.autocast or frozen.trained_width(setting) == setting.width
    return 0 if narrow else setting.width * block.trainable


@dataclass(frozen=True, slots=True)
class _WithGradient:
    """Elements of flat parameters that get a gradient."""

    blocks: list[int]
    behind: list[int]
    """Of the blocks behind each."""
    root: int


def _with_gradient(setting: Setting) -> _WithGradient:
    """With original parameters (use_orig_params, as Lightning's FSDPStrategy sets it) trained and frozen weights share
    a flat parameter, whose gradient covers all of it. PEFT's wrap policy gives adapters units of their own.
    """
    shared, shapes = setting.training.code.library != "transformers", setting.shapes

    def of(block: Block) -> int:
        return block.parameters if block.trainable and shared else block.trainable

    def work() -> _WithGradient:
        blocks = per_layer(shapes, of)
        behind = list(accumulate(reversed(blocks), initial=0))[-2::-1]
        return _WithGradient(blocks, behind, of(shapes.outer))

    return derived(shapes, ("with gradient", shared), work)


def _backward(setting: Setting, activations: Activations, whole: int, gathered: Gathered) -> Iterator[Parts]:
    """Every block's backward pass, its reduction, and the root's.

    Gradients come as views of the flat parameter, c each, and are put together, c each, before they are reduced
    (autograd's backward of split); the views' are gone then.
    """
    w, shards, c = frozen.trained_width(setting), setting.shards, setting.width
    units, blocks, layers = _with_gradient(setting), setting.shapes.blocks, activations.layers
    head = c * setting.shapes.outer.largest_trainable
    held = _held_inputs(setting, activations)
    for index in turning_points(setting.shapes, setting.plan.checkpointing.kind != "every"):
        reduced = max(whole, ceil(w * units.behind[index] / shards)) + head
        # Held inputs stay until the pass ends, and so does a block's own.
        stays = (len(layers) - index) * held
        kept = stays + (activations.kept if held else activations.upto[index])
        for point in points(setting.shapes, index, layers[index]):
            # A flat parameter that holds frozen weights too has a gradient as large as itself.
            flat = units.blocks[index] if units.blocks[index] > blocks[index].trainable else point.gradients
            yield {
                "gradients": reduced + c * flat,
                "gathered_parameters": gathered.at_block(index) + frozen.dequantized(setting, blocks[index]),
                "activations": kept + (layers[index].extra if held else point.activations),
            }
        yield {
            # Unsharded, the reduced gradient is cast to the weights' type instead.
            "gradients": reduced + (c + (c if setting.stage else max(c, w))) * units.blocks[index],
            "gathered_parameters": gathered.at_block(index),
            "activations": kept - (0 if held else layers[index].kept),
        }
    reduced = max(whole, ceil(w * sum(units.blocks) / shards))
    yield {"gradients": reduced + 2 * c * units.root, "gathered_parameters": gathered.root}


def _held_inputs(setting: Setting, activations: Activations) -> int:
    """Bytes of a block's input that stay until the backward pass ends, and as many for its gradient.

    A unit with frozen weights is sharded again by a hook on its inputs (_runtime_utils.py:
    _register_post_backward_reshard_only_hook). Under reentrant checkpointing these are the detached inputs of the
    recomputation, leaves with a .grad, and the hook's state, kept on the flat parameter until the last callback, holds
    them. Source: derived, and seen with torch 2.13 (tests/memory/test_reentrant_fsdp1.py).
    """
    code = setting.training.code
    if not code.reentrant or setting.frozen == 0 or setting.plan.checkpointing.kind != "full":
        return 0
    return activations.layers[0].kept
