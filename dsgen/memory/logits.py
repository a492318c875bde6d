"""The output head's logits and the cross-entropy over them, bytes of one micro-batch."""

from dataclasses import dataclass

from dsgen.facts.constants import constant
from dsgen.memory.activations.checkpointed import is_wide
from dsgen.memory.activations.kernels import caps, kernels_of
from dsgen.memory.activations.saved import trained_layers
from dsgen.memory.derived import derived
from dsgen.memory.setting import FP32, Setting
from dsgen.shapes.values import Shapes


@dataclass(frozen=True, slots=True)
class Logits:
    """Peaks of the loss in the forward and in the backward pass."""

    forward: int
    backward: int


def logits(setting: Setting) -> Logits:
    """As ``_plain``; where logits are capped tanh's output, c V, is kept beside them (none where they are made in
    chunks by the loss itself)."""
    found = _plain(setting)
    whole = setting.training.loss != "fused_linear" and (
        setting.training.loss != "chunked" or setting.training.code.library in ("litgpt", "torchtune")
    )
    if not found.forward or not whole or not caps(setting.shapes.architecture):
        return found
    kept = setting.width * setting.shapes.architecture.vocab * setting.tokens
    return Logits(found.forward + kept, found.backward + kept)


def _plain(setting: Setting) -> Logits:
    """Per token, V vocabulary, c bytes of a compute element:

    - full, forward: logits c V, their fp32 copy 4 V (none in fp32), log-probabilities 4 V: 10 V in 16 bit, 8 V in
      fp32.
      Backward: log-probabilities 4 V, their gradient 4 V, the gradient of the fp32 logits 4 V: 12 V. The logits are
      gone by then, unless the caller holds the model's output (c V more): transformers' Trainer and the generated
      train.py take the loss alone. Source: derived from transformers 5.24 loss/loss_utils.py (ForCausalLMLoss),
      trainer.py (compute_loss) and torch's nll_loss and log_softmax; public runs show 12.4 to 14.8 V.
    - chunked: the same for one chunk of the tokens at a time, and the gradient of the hidden states c h.
    - fused_linear: logits and their fp32 copy of one chunk of about T h / V tokens, (c + 4) h; gradient of the
      hidden states c h; gradient of the head c V h and one addend to it, made in the forward pass.
      Source: derived from Liger-Kernel ops/fused_linear_cross_entropy.py (chunk = T / ceil(V / h)).
    """
    arch, c, t = setting.shapes.architecture, setting.width, setting.tokens
    vocab, code = arch.vocab, setting.training.code
    forward = (c + (FP32 if setting.mixed else 0) + FP32) * vocab * t - held(setting)
    backward = 3 * FP32 * vocab * t
    if setting.training.loss == "classification":
        return Logits(0, 0)
    if setting.training.loss == "fused":
        # fp32 logits and their shifted copy, which becomes the gradient in place; then the slice's gradient: 8 V.
        fused = 2 * FP32 * vocab * t
        return Logits(fused, fused) if code.loss_in_fp32 else _in_compute_type(setting, 2 * c)
    if setting.training.loss == "full" and "loss" in code.fused:
        # Compiled as one: fp32 lives in registers, so the logits and their gradient are all there is.
        return Logits(c * vocab * t, 2 * c * vocab * t)
    if setting.training.loss == "full" and not code.loss_in_fp32:
        return _in_compute_type(setting, 4 * FP32 if code.autocast else 3 * c)
    if setting.training.loss == "chunked" and code.library == "litgpt":
        # The head is applied by chunks: all logits come first, which the training loop holds, with log-probabilities in
        # their type; these become their gradients, chunk by chunk, before the head's first.
        return Logits(2 * c * vocab * t, 2 * c * vocab * t)
    if setting.training.loss == "chunked" and code.library == "torchtune":
        return _head_by_chunks(setting)
    if setting.training.loss == "chunked":
        hidden = c * arch.hidden * t
        chunks = int(constant("loss_chunks"))
        return Logits(forward // chunks + hidden, backward // chunks + hidden)
    if setting.training.loss == "fused_linear":
        head = 2 * c * vocab * arch.hidden
        fused = (c + FP32 + c) * arch.hidden * t + head
        return Logits(fused, fused)
    return Logits(forward, backward)


def _head_by_chunks(setting: Setting) -> Logits:
    """torchtune: the head is applied to n chunks of the tokens, and the loss taken of each in fp32.

    All logits, c V, come first; not compiled, the losses keep log-probabilities, 4 V, and make one chunk's fp32 copy at
    a time. Backwards, each chunk's gradient, c V / n, takes the place of its logits; when all are there, the trained
    head gets its gradient from chunk after chunk: c V h, and an addend as large.
    Source: torchtune modules/transformer.py:chunked_output, modules/loss.
    """
    c, t, vocab = setting.width, setting.tokens, setting.shapes.architecture.vocab
    chunks = int(constant("loss_chunks"))
    every, chunk = c * vocab * t, c * vocab * t // chunks
    kept = 0 if setting.training.compile or not setting.mixed else FP32 * vocab * t
    weight = c * vocab * setting.shapes.architecture.hidden
    head = weight if setting.shapes.outer.trainable >= vocab * setting.shapes.architecture.hidden else 0
    return Logits(
        every + kept + (FP32 * vocab * t // chunks if kept else 0),
        max(every + kept + chunk, every + head, every - chunk + 2 * head),
    )


def _in_compute_type(setting: Setting, width: int) -> Logits:
    """``width`` bytes of each logit where the model takes the loss as the logits come, c V more where these are kept
    until the backward pass is over.

    - full: logits, their shifted copy, log-probabilities; then these, their gradient and the logits': 3 c V.
    - fused: the shifted copy that becomes the gradient, and the slice's gradient: 2 c V.
    - full under autocast: cross_entropy casts to fp32; with the fp32 copy that accelerate returns, 4 x 4 V.
    """
    if setting.training.code.keeps_logits:
        width += setting.width
    size = width * setting.shapes.architecture.vocab * setting.tokens
    return Logits(size, size)


def around_the_blocks(setting: Setting) -> int:
    """Kept outside the blocks: what the last norm keeps (activations/norms.py), token ids, labels and mask 24 bytes;
    logits that are held.

    The norm: its input, 4 h, or c h in one kernel; where it is trained and no kernel, also the normalised values, c h
    or 4 h; its output, c h, where the output head is trained.
    """
    arch, c = setting.shapes.architecture, setting.width
    norm_trained, head_trained = derived(setting.shapes, "trained outside", lambda: _trained(setting.shapes))
    between = FP32 if is_wide(setting) else c
    width = between
    if arch.norm != "layernorm" and "norm" not in setting.training.code.fused:
        product = FP32 if kernels_of(arch, setting.training.code.library).norm_product_in_fp32 else between
        width = FP32 + (product if norm_trained else 0)
    if head_trained:
        width += c
    return setting.tokens * (width * arch.hidden + 24) + held(setting)


def _trained(shapes: Shapes) -> tuple[bool, bool]:
    """Whether the last norm is trained, and the output head, be it the embedding."""
    trained = trained_layers(shapes.outer)
    head = "embed_tokens" if shapes.architecture.tied else "lm_head"
    return "norm" in trained, head in trained


def held(setting: Setting) -> int:
    """Logits in fp32, 4 V, that a variable of the training loop holds until the backward pass is over."""
    training = setting.training
    if training.loss != "full" or not training.code.keeps_logits or not training.code.loss_in_fp32:
        return 0
    return FP32 * setting.shapes.architecture.vocab * setting.tokens
