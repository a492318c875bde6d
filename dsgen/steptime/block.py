"""One block: its parts, and what checkpointing runs again of it."""

from dataclasses import dataclass

from dsgen.shapes.values import Block
from dsgen.steptime.attention import core
from dsgen.steptime.cost import Cost
from dsgen.steptime.products import products
from dsgen.steptime.setting import Setting
from dsgen.steptime.traffic import activation, biases, cost, joined, latent_norms, norm, residuals, rope, routed


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCost:
    """Of one micro-batch on one rank."""

    attention: Cost
    """Linear layers of the attention."""
    core: Cost
    mlp: Cost
    """Linear layers of the MLP, or of the experts that a token goes to."""
    activation: Cost
    rest: Cost
    """Norms, rotary embedding, additions, sums for biases."""

    @property
    def all(self) -> Cost:
        return self.attention + self.core + self.mlp + self.activation + self.rest


def block_cost(setting: Setting, block: Block) -> BlockCost:
    """Every part of the block once. Tensor-parallel ranks each have 1 / t of q, k and the intermediate width, and all
    of the hidden one, unless they split the sequence there."""
    arch, t = setting.arch, setting.tensor
    q, k = arch.heads * arch.head_dim / t, arch.kv_heads * arch.head_dim / t
    trained = any(tensor.trainable and "norm" in tensor.name for tensor in block.tensors)
    rest = cost(setting, norm(setting, arch.hidden, trained=trained), setting.between).times(arch.norms_per_layer)
    rest += cost(setting, residuals(setting), setting.between)
    rest += cost(setting, joined(setting), setting.tokens / t)
    if trained:
        rest += cost(setting, biases(setting), setting.tokens / t)
    if arch.mla is not None:
        rest += latent_norms(setting, arch.mla, trained=trained)
        rest += cost(setting, rope(setting, arch.mla.qk_rope_head_dim * (arch.heads / t + 1)), setting.tokens)
    elif arch.positional == "rope":
        rest += cost(setting, rope(setting, q + k), setting.tokens)
    if arch.qk_norm is not None:
        rest += cost(setting, norm(setting, q, trained=trained), setting.tokens)
        rest += cost(setting, norm(setting, k, trained=trained), setting.tokens)
    if block.is_moe:
        rest += cost(setting, routed(setting), setting.tokens)
    return BlockCost(
        attention=products(setting, block, "self_attn."),
        core=core(setting),
        mlp=products(setting, block, "mlp."),
        activation=cost(setting, activation(setting, _intermediate(setting, block) / t), setting.tokens),
        rest=rest,
    )


def _intermediate(setting: Setting, block: Block) -> float:
    """Features between the MLP's products, for each token: those of all experts that it goes to."""
    arch, moe = setting.arch, setting.arch.moe
    if not block.is_moe or moe is None:
        return arch.intermediate
    shared = moe.shared_intermediate if moe.shared_intermediate is not None else moe.shared * moe.intermediate
    return moe.top_k * moe.intermediate + shared


def recomputed(setting: Setting, block: BlockCost) -> tuple[float, float]:
    """Seconds and launches of one layer that run a second time, on average over layers.

    - full: the forward pass; every n: that of one layer in n.
    - selective: all but what it keeps, the outputs of products and of the attention kernel; torchtitan keeps every
      second product only.
    - core_attention, core_attention_mlp: Megatron's, as they say.
    """
    checkpointing = setting.plan.checkpointing
    again: tuple[Cost, ...] = ()
    match checkpointing.kind:
        case "full":
            again = (block.all,)
        case "every":
            again = (block.all.times(1 / checkpointing.every),)
        case "selective":
            again = (block.activation, block.rest)
            if setting.training.code.library == "torchtitan":
                again += (block.attention.times(0.5), block.mlp.times(0.5))
            if setting.training.attention == "eager":
                again += (block.core,)
        case "core_attention":
            again = (block.core,)
        case "core_attention_mlp":
            again = (block.core, block.mlp, block.activation)
        case _:
            pass
    return sum(part.forward for part in again), sum(part.forward_launches for part in again)
