"""Kernels that a CPU lacks, as what they keep for the backward pass."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class FusedNorm(torch.autograd.Function):
    """RMSNorm in one kernel: keeps its input and one number a row (torch 2.8 and newer on a GPU, Liger, apex)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight, x.new_empty(x.shape[:-1], dtype=torch.float32))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, Tensor | None]:
        x, weight, _rstd = ctx.saved_tensors
        return torch.empty_like(x), None if weight is None else torch.empty_like(weight)


def fused_norm(x: Tensor, shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """In the place of torch.nn.functional.rms_norm."""
    del shape, eps
    apply: Any = FusedNorm.apply
    result: Tensor = apply(x, weight)
    return result


def transformers_norm(x: Tensor, shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """As LlamaRMSNorm writes it (transformers/models/llama/modeling_llama.py)."""
    del shape
    kind = x.dtype
    x = x.to(torch.float32)
    variance = x.pow(2).mean(-1, keepdim=True)
    x = x * torch.rsqrt(variance + (eps or 0.0))
    return x.to(kind) if weight is None else weight * x.to(kind)


class FusedGate(torch.autograd.Function):
    """silu(gate) * up in one kernel: keeps both, and writes their gradients over them (Liger-Kernel, ops/swiglu.py)."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return torch.empty_like(gate)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        return gate.detach(), up.detach()


def fuse_gates(model: Any) -> None:
    """In every gated MLP of linear layers."""
    for module in model.modules():
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in ("gate_proj", "up_proj", "down_proj")):
            module.forward = partial(_gated, module)


def _gated(module: Any, x: Tensor) -> Tensor:
    apply: Any = FusedGate.apply
    result: Tensor = module.down_proj(apply(module.gate_proj(x), module.up_proj(x)))
    return result


class FusedLinearLoss(torch.autograd.Function):
    """Output head and cross-entropy by chunks, gradients made in the forward pass (Liger-Kernel,
    ops/fused_linear_cross_entropy.py)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        tokens, hidden = x.shape
        chunks = -(-weight.shape[0] // hidden)
        rows = -(-tokens // chunks)
        grad_x, grad_weight = torch.zeros_like(x), torch.zeros_like(weight)
        losses = x.new_zeros(tokens, dtype=torch.float32)
        for start in range(0, tokens, rows):
            part = x[start : start + rows]
            logits = part @ weight.t()  # becomes its own gradient in place
            grad_x[start : start + rows] = logits @ weight
            torch.addmm(grad_weight, logits.t(), part, out=grad_weight)
        ctx.save_for_backward(grad_x, grad_weight)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, Tensor]:
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x, grad_weight


class InPlaceLoss(torch.autograd.Function):
    """Cross-entropy in one kernel: its gradient takes the place of the logits (Liger-Kernel, ops/cross_entropy.py)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        ctx.save_for_backward(logits)
        return logits.new_zeros((), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Tensor:
        (gradient,) = ctx.saved_tensors
        result: Tensor = gradient.detach()
        return result


def full_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """As the generated train.py takes it."""
    flat = logits.float().flatten(0, -2)
    return functional.cross_entropy(flat, targets.flatten(), reduction="sum")


def narrow_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Taken of the logits as they come."""
    return functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="sum")


def fused_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """One kernel over a copy without the last token, as transformers' models shift them."""
    del targets
    apply: Any = InPlaceLoss.apply
    result: Tensor = apply(logits.float()[..., :-1, :].flatten(0, -2))
    return result


def narrow_fused_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The same of logits as they come."""
    del targets
    apply: Any = InPlaceLoss.apply
    result: Tensor = apply(logits[..., :-1, :].flatten(0, -2))
    return result


def fused_linear_loss(head: Any, x: Tensor, labels: Tensor) -> Tensor:
    """Without whole logits; inside the model, where its head is gathered."""
    del labels
    apply: Any = FusedLinearLoss.apply
    result: Tensor = apply(x.flatten(0, -2), head.weight)
    return result
