"""The moments of a step of Megatron-Core on the fullest rank, tensors only.

Symbols: P parameters of the rank, d ranks that the distributed optimizer shards over, V padded vocabulary, t tensor-
parallel ranks, c bytes of a compute element.
"""

from math import ceil

from dsgen.facts.constants import constant
from dsgen.memory.ledger import Moment
from dsgen.memory.megatron.activations import Kept, kept
from dsgen.memory.megatron.stage import Stage, padded_vocab, stages
from dsgen.memory.parts import Parts, largest, moment
from dsgen.memory.setting import FP32, Setting


def moments(setting: Setting) -> tuple[Moment, ...]:
    """Of the first and the last pipeline stage that with the larger peak; the last where only it was measured."""
    found = [_moments(setting, stage) for stage in stages(setting) if stage.last or not setting.training.code.last_rank]
    return max(found, key=lambda each: max(moment.total for moment in each))


def _moments(setting: Setting, stage: Stage) -> tuple[Moment, ...]:
    """- Weights c P, gradients 4 P in one buffer from the beginning (accumulated in fp32; c P where they are reduced in
      the compute type, grad_reduce_in_fp32 false), master weights 4 P and Adam's states 8 P, both over d with the
      distributed optimizer: 18 P, or (6 + 12 / d) P (Megatron-LM README).
    - Logits on the last stage: c V / t and their fp32 form 4 V / t, whose softmax and gradient take its place
      (megatron/core/tensor_parallel/cross_entropy.py); then the gradient in the compute type, c V / t. Fused
      (megatron/core/fusions/fused_cross_entropy.py), each compiled part returns tensors of its own: the exponentials
      come beside the fp32 logits, 4 V / t more.
    """
    plan, c = setting.plan, setting.width
    shards = setting.shards if plan.zero_stage else 1
    shard = ceil(stage.parameters / shards)
    always: Parts = {
        "parameters": c * stage.parameters,
        "gradients": (c if plan.gradient_precision == plan.precision else FP32) * stage.parameters,
        "buffers": _workspace(setting),
        "master_weights": FP32 * shard if setting.mixed else 0,
        "optimizer_states": FP32 * setting.optimizer.kept(setting.training.optimizer.momentum) * shard,
    }
    each: Kept = kept(setting)
    activations = round(stage.in_flight * each.layer) + (each.embedding if stage.first else 0)
    logits = 0
    if stage.last:
        activations += 2 * c * setting.shapes.architecture.hidden * setting.tokens
        wide = 2 * FP32 if "loss" in setting.training.code.fused else FP32
        logits = (c + wide) * padded_vocab(setting) // plan.tensor_parallel * setting.tokens
    turn = always | {"activations": activations, "logits": logits}
    return (
        moment("end of forward", turn),
        largest("backward", turn, always | {"activations": activations + each.transient}),
        moment("optimizer step", always),
    )


def _workspace(setting: Setting) -> int:
    """Transformer Engine's workspace for cuBLAS, beside torch's."""
    hopper = (setting.hardware.gpu.cuda or 0) >= _HOPPER
    return int(constant("te_workspace_hopper" if hopper else "te_workspace"))


_HOPPER = 9.0
"""Compute capability."""
