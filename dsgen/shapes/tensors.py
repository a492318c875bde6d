"""All tensors of a decoder, built from its architecture.

The names are a contract: the decoder that dsgen generates has exactly these parameters. They are
those of Hugging Face's Llama for every family, also where the original fuses projections (GPT-2's
``c_attn``) or calls them otherwise, because the bytes are the same and one set of names is enough.
Weights of linear layers are (out, in).

In each block (``layers.<n>.`` in the generated decoder; here relative to it):

    self_attn.{q,k,v,o}_proj.{weight,bias}
    self_attn.{q,k}_norm.weight                     qk_norm: (head_dim) or (q), (k)
    self_attn.sinks                                 extra sinks=1: (heads)
    self_attn.{q_a_proj,q_b_proj} or q_proj, kv_a_proj_with_mqa, kv_b_proj, o_proj    multi-head
    self_attn.{q_a_layernorm,kv_a_layernorm}.weight                                   latent attention
    mlp.{gate,up,down}_proj.{weight,bias}           no gate_proj where the MLP has no gate
    mlp.gate.{weight,bias}                          router: (experts, h)
    mlp.gate.e_score_correction_bias                frozen; (experts)
    mlp.experts.{gate,up,down}_proj                 stacked: (experts, out, in)
    mlp.experts.{gate,up,down}_proj_bias            extra expert_bias=1: (experts, out)
    mlp.shared_experts.{gate,up,down}_proj.weight   all shared experts as one MLP
    mlp.shared_expert_gate.weight                   extra shared_gate=1: (1, h)
    {input,post_attention,pre_feedforward,post_feedforward}_layernorm.{weight,bias}   see norms.py
    <linear layer>.lora_A.weight, .lora_B.weight    see lora.py

Outside the blocks:

    embed_tokens.weight                             (V, h), or (V, p) with extra embed_proj=p
    project_in.weight, project_out.weight           extra embed_proj=p: (h, p), (p, h)
    embed_positions.weight                          learned positions: (max_positions + pos_offset, h)
    embed_layernorm.{weight,bias}                   extra embed_norm=1
    norm.{weight,bias}                              absent with extra no_final_norm=1
    lm_head.{weight,bias}                           weight absent if tied; bias with extra lm_bias=1
"""

from collections.abc import Iterator

from dsgen.shapes.attention import attention
from dsgen.shapes.linear import linear
from dsgen.shapes.mlp import dense, mixture
from dsgen.shapes.norms import norm, norm_names
from dsgen.shapes.values import Architecture, Block, Shapes, Tensor

MOST_LAYERS = 10_000
"""Above any decoder; a file or spec that says more is refused before anything is built."""


def build(name: str, arch: Architecture, notes: tuple[str, ...] = (), stated_parameters: int | None = None) -> Shapes:
    """Every tensor of a decoder with this architecture."""
    kinds = {moe: Block(tuple(_block(arch, moe)), is_moe=moe) for moe in {is_moe(arch, n) for n in range(arch.layers)}}
    return Shapes(
        name=name,
        architecture=arch,
        blocks=tuple(kinds[is_moe(arch, layer)] for layer in range(arch.layers)),
        outside=tuple(_outside(arch)),
        notes=notes,
        stated_parameters=stated_parameters,
    )


def is_moe(arch: Architecture, layer: int) -> bool:
    """Whether the layer (from 0) has experts: after the first dense ones, every layer_step-th layer."""
    moe = arch.moe
    return moe is not None and layer >= moe.first_dense_layers and (layer + 1) % moe.layer_step == 0


def _block(arch: Architecture, moe: bool) -> Iterator[Tensor]:
    yield from attention(arch)
    if moe and arch.moe is not None:
        yield from mixture(arch, arch.moe)
    else:
        yield from dense(arch, arch.intermediate)
    for name in norm_names(arch):
        yield from norm(name, arch.hidden, arch)


def _outside(arch: Architecture) -> Iterator[Tensor]:
    extra, h = arch.extra, arch.hidden
    width = int(extra.get("embed_proj", h))
    yield Tensor("embed_tokens.weight", (arch.vocab, width))
    if "embed_proj" in extra:
        yield from linear("project_in", h, width)
        yield from linear("project_out", width, h)
    if arch.positional == "learned":
        assert arch.max_positions is not None, "learned positions have a number"
        yield Tensor("embed_positions.weight", (arch.max_positions + int(extra.get("pos_offset", 0)), h))
    if extra.get("embed_norm") == "1":
        yield from norm("embed_layernorm", h, arch)
    if extra.get("no_final_norm") != "1":
        yield from norm("norm", h, arch)
    if not arch.tied:
        yield Tensor("lm_head.weight", (arch.vocab, width))
    if extra.get("lm_bias") == "1":
        yield Tensor("lm_head.bias", (arch.vocab,))
