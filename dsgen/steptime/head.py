"""What stands outside the blocks: embedding, last norm, output head and loss.

Symbols: T tokens, V vocabulary over t tensor-parallel ranks, h hidden, c bytes of a compute element.
"""

from dsgen.steptime.cost import Cost
from dsgen.steptime.layer import layer_of
from dsgen.steptime.setting import FP32, Setting
from dsgen.steptime.traffic import Bytes, cost, norm


def head_cost(setting: Setting) -> Cost:
    """The head's products, the loss, the last norm, and the embedding's rows: read and written forwards, 2 c h; the
    gradient read and added, 3 c h.

    fused_linear takes the loss of one chunk of tokens at a time and computes both gradients at once, in the forward
    pass; the weight's gradient is then added up V h once for each chunk (Liger-Kernel
    ops/fused_linear_cross_entropy.py: chunks of about T h / V tokens).
    """
    training, arch, c = setting.training, setting.arch, setting.width
    trained = _head_is_trained(setting)
    outside = cost(setting, norm(setting, arch.hidden, trained=trained), setting.between)
    outside += cost(setting, Bytes(2 * c * arch.hidden, 3 * c * arch.hidden, 2, 2), setting.tokens)
    if training.loss == "classification":
        return outside
    vocab = arch.vocab / setting.tensor
    products = layer_of(setting, setting.tokens, vocab, arch.hidden, trained=trained)
    total = outside + products + cost(setting, loss(setting, vocab), setting.tokens)
    if training.loss == "fused_linear" and trained:
        chunks = min(setting.tokens, max(1.0, vocab / arch.hidden))
        total += Cost(chunks * 3 * c * vocab * arch.hidden / setting.machine.memory, 0, chunks, 0)
    return total


def _head_is_trained(setting: Setting) -> bool:
    name = "embed_tokens.weight" if setting.arch.tied else "lm_head.weight"
    return any(tensor.trainable for tensor in setting.shapes.outside if tensor.name == name)


def loss(setting: Setting, vocab: float) -> Bytes:
    """Cross-entropy of ``vocab`` logits a token.

    - full, chunked: to fp32 (c + 4), log-softmax 8; backwards the gradient of the choice written over zeros 4, of
      log-softmax 12, to c (4 + c); no casts where the loss is taken in c.
    - Megatron's vocab-parallel one on fp32 logits: largest, subtract, exp, sum, divide: 4 passes of 8; backwards 8, to
      c.
    - fused, fused_linear, compiled: the logits are read twice and the gradient written over them: 3 c.
    """
    c, training = setting.width, setting.training
    if training.loss in ("fused", "fused_linear"):
        return Bytes(3 * c * vocab, 2 * c * vocab, 2, 1)
    if "loss" in training.code.fused:
        return Bytes(2 * c * vocab, 2 * c * vocab, 2, 1)
    cast = c + FP32 if training.code.loss_in_fp32 and c < FP32 else 0
    if setting.megatron:
        return Bytes((cast + 4 * 8) * vocab, (8 + cast) * vocab, 10, 4)
    width = FP32 if cast else c
    return Bytes((cast + 2 * width) * vocab, (4 * width + cast) * vocab, 4, 4)
