"""The generated decoder at its real sizes, with as many layers as asked."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import torch

from dsgen.workers.modules import load_file
from dsgen.workers.simulation import kernels

_NORMS = {"fused": kernels.fused_norm, "transformers": kernels.transformers_norm}
LOSSES = {
    "full": kernels.full_loss,
    "narrow": kernels.narrow_loss,
    "fused": kernels.fused_loss,
    "narrow_fused": kernels.narrow_fused_loss,
}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def decoder(request: Mapping[str, Any], layers: int) -> Any:
    """Made on tensors without contents, uncounted: no framework keeps the unsharded weights."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(TYPES[request["stored"]])
    try:
        model = _published(request, layers) if request["transformers"] else _generated(request, layers)
    finally:
        torch.set_default_dtype(default)
    if request["fused_gates"]:
        kernels.fuse_gates(model)
    return model.train()


def _generated(request: Mapping[str, Any], layers: int) -> Any:
    file = load_file(request["model"])
    if hasattr(file, "LORA_DROPOUT"):
        file.LORA_DROPOUT = 0.0
    model = file.Decoder(replace(file.Config(), num_hidden_layers=layers))
    if request["loss"] == "fused_linear":
        head = model.lm_head if hasattr(model, "lm_head") else model.embed_tokens
        model.loss = partial(kernels.fused_linear_loss, head)
    else:
        criterion = LOSSES[request["loss"]]
        model.loss = lambda x, labels: criterion(model.logits(x), labels)
    return model


def _published(request: Mapping[str, Any], layers: int) -> Any:
    from dsgen.workers.simulation.published import Published

    return Published(request, layers)


@contextmanager
def kernels_of(request: Mapping[str, Any]) -> Iterator[None]:
    """The norm that the training would use, in the place of the one that a CPU has."""
    with ExitStack() as stack:
        norm = _NORMS.get(request["norm"])
        if norm is not None:
            stack.enter_context(patch.object(torch.nn.functional, "rms_norm", norm))
        yield
