"""Tensors of one MLP: dense, or a mixture of experts with its router and shared experts."""

from collections.abc import Iterator

from dsgen.shapes.linear import linear
from dsgen.shapes.values import Architecture, Moe, Tensor


def dense(arch: Architecture, width: int, prefix: str = "mlp") -> Iterator[Tensor]:
    """3 hi weights where the MLP is gated, else 2 hi."""
    if arch.gated:
        yield from linear(f"{prefix}.gate_proj", width, arch.hidden, bias=arch.mlp_bias)
    yield from linear(f"{prefix}.up_proj", width, arch.hidden, bias=arch.mlp_bias)
    yield from linear(f"{prefix}.down_proj", arch.hidden, width, bias=arch.mlp_bias)


def mixture(arch: Architecture, moe: Moe) -> Iterator[Tensor]:
    """Router, experts stacked into one tensor per projection (expert, out, in), shared experts.

    Stacked because Hugging Face stacks them too since transformers 5, and because a sharded model
    then gathers a layer's experts in one collective. They are plain parameters, not linear layers,
    so their names carry no ``.weight``.
    """
    extra, h, width = arch.extra, arch.hidden, moe.intermediate
    yield from linear("mlp.gate", moe.experts, h, bias=extra.get("router_bias") == "1")
    if extra.get("router_correction") == "1":
        # Moved by the load, not by gradients (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
        yield Tensor("mlp.gate.e_score_correction_bias", (moe.experts,), trainable=False)
    for name, out, inner in (("gate_proj", width, h), ("up_proj", width, h), ("down_proj", h, width)):
        if name == "gate_proj" and not arch.gated:
            continue
        yield Tensor(f"mlp.experts.{name}", (moe.experts, out, inner))
        if extra.get("expert_bias") == "1":
            yield Tensor(f"mlp.experts.{name}_bias", (moe.experts, out))
    if shared := shared_width(moe):
        yield from dense(arch, shared, "mlp.shared_experts")
    if extra.get("shared_gate") == "1":
        yield from linear("mlp.shared_expert_gate", 1, h)


def shared_width(moe: Moe) -> int:
    """Width of the shared experts taken as one MLP; 0 where there are none."""
    if moe.shared_intermediate is not None:
        return moe.shared_intermediate
    return moe.shared * moe.intermediate
