"""A class of transformers, with what the simulation asks of a decoder."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from dsgen.workers.simulation import kernels
from dsgen.workers.simulation.checkpointing import wrap
from dsgen.workers.simulation.model import LOSSES


class Published(nn.Module):
    """Token ids in, logits out; with labels the loss."""

    def __init__(self, request: Mapping[str, Any], layers: int) -> None:
        super().__init__()
        known = request["transformers"]
        config = AutoConfig.for_model(known["model_type"], **known["configs"][str(layers)])
        loader: Any = AutoModelForCausalLM
        self.inner: Any = loader.from_config(config, attn_implementation=known["attention"])
        self.config = self.inner.config
        self.reentrant: bool = known["reentrant"]
        self.request = request
        self._without_dropout()
        if request["norm"] == "fused":
            self._with_fused_norms()

    def _without_dropout(self) -> None:
        """With it attention would take the mathematical path, which no GPU takes."""
        for module in self.inner.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            for name in ("attention_dropout", "dropout"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, 0.0)

    def _with_fused_norms(self) -> None:
        """As Liger patches them in."""
        for module in self.inner.modules():
            if type(module).__name__.endswith("RMSNorm"):
                module.forward = partial(_normalised, module)

    @property
    def layers(self) -> Any:
        """The list of the decoder's layers, by their class or, where it is called otherwise, by their number."""
        lists = [module for module in self.inner.modules() if isinstance(module, nn.ModuleList)]
        name, count = self.request["transformers"]["layer_class"], self.config.num_hidden_layers
        named = [found for found in lists if type(found[0]).__name__ == name]
        alike = [found for found in lists if len(found) == count]
        if not named and not alike:
            raise ValueError(f"{type(self.inner).__name__} has no list of {name}")
        return (named or alike)[0]

    @property
    def embed_tokens(self) -> Any:
        return self.inner.get_input_embeddings()

    def enable_checkpointing(self, kind: str, every: int) -> None:
        """Its own, or wrappers for what it has no switch for."""
        del every
        if kind == "full":
            self.inner.gradient_checkpointing_enable({"use_reentrant": self.reentrant})
        else:
            wrap(self.layers, self.request)

    def forward(self, input_ids: Any, labels: Any = None) -> Any:
        if labels is not None and self.request["loss"] == "fused_linear":
            hidden = self.inner.base_model(input_ids, use_cache=False)[0]
            return kernels.fused_linear_loss(self.inner.get_output_embeddings(), hidden, labels)
        logits = self.inner(input_ids, use_cache=False).logits
        return logits if labels is None else LOSSES[self.request["loss"]](logits, labels)


def _normalised(module: Any, x: Any) -> Any:
    return kernels.fused_norm(x, None, module.weight)
