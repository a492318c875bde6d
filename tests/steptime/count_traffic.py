"""Counts what the tensor operations of one layer of Hugging Face models read and write; run as its own process.

stdin: {name: {"class": causal model, "config": {...}, "dtype": ..., "tokens", "attention": "none" or "eager"}}
stdout: {name: {"layer": [forward, backward], "outside": [forward, backward], "products": [forward, backward],
"kernels": [forward, backward]}}. Bytes per token, matrix products left out and counted apart; nothing is computed: all
tensors are on the meta device. One layer is the difference between models of two layers and of one. "none" leaves the
attention's core out.
"""

import json
import sys
import warnings
from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

warnings.simplefilter("ignore")
import transformers  # noqa: E402 (its import warns)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # noqa: E402

VIEWS = frozenset(
    (
        "view",
        "_unsafe_view",
        "transpose",
        "t",
        "permute",
        "expand",
        "slice",
        "select",
        "unsqueeze",
        "squeeze",
        "alias",
        "detach",
        "as_strided",
        "split",
        "split_with_sizes",
        "unbind",
        "_reshape_alias",
        "lift_fresh",
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
    )
)
PRODUCTS = frozenset(("mm", "addmm", "bmm", "baddbmm"))


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes that operations read and write: each operand and result once; what is broadcast, without its copies."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.__name__.partition(".")[0]
        if name not in VIEWS:
            self.kernels[name] += 1
            self.bytes[name] += sum(size(leaf) for leaf in tree_leaves((args, kwargs, result)))
        return result


def size(leaf: Any) -> int:
    if not isinstance(leaf, torch.Tensor):
        return 0
    number = 1
    for length, stride in zip(leaf.shape, leaf.stride(), strict=True):
        if stride:
            number *= length
    return number * leaf.element_size()


class NoCore(torch.autograd.Function):
    """Takes the place of the attention's core: right shapes, no operation."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(query, key, value)
        return query.new_empty(query.shape[0], query.shape[2], query.shape[1], value.shape[3])

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        return tuple(torch.empty_like(saved) for saved in ctx.saved_tensors)


def no_core(module: Any, query: Any, key: Any, value: Any, mask: Any, **kwargs: Any) -> Any:
    return NoCore.apply(query, key, value), None  # type: ignore[no-untyped-call]


ALL_ATTENTION_FUNCTIONS["none"] = no_core


def traffic(case: dict[str, Any], layers: int) -> list[Traffic]:
    model_class = getattr(transformers, case["class"])
    config = model_class.config_class(**case["config"], num_hidden_layers=layers)
    config._attn_implementation = case["attention"]
    with torch.device("meta"):
        model = model_class(config).to(getattr(torch, case["dtype"])).train()
        inputs = torch.zeros(1, case["tokens"], dtype=torch.long)
        # Of four dimensions, so that none is made of it by looking at values.
        mask = torch.zeros(1, 1, case["tokens"], case["tokens"], dtype=getattr(torch, case["dtype"]))
    if case["frozen"]:
        model.requires_grad_(False)
        model.get_input_embeddings().requires_grad_(True)
    forward, backward = Traffic(), Traffic()
    with forward:
        loss = model(input_ids=inputs, labels=inputs, attention_mask=mask, use_cache=False).loss
    with backward:
        loss.backward()
    return [forward, backward]


def split(counter: Counter[str]) -> tuple[int, int]:
    products = sum(count for name, count in counter.items() if name in PRODUCTS)
    return counter.total() - products, products


def main() -> None:
    counted = {}
    for name, case in json.load(sys.stdin).items():
        one, two = traffic(case, 1), traffic(case, 2)
        tokens = case["tokens"]
        pairs = list(zip(one, two, strict=True))
        layer = [(split(b.bytes)[0] - split(a.bytes)[0]) / tokens for a, b in pairs]
        counted[name] = {
            "layer": layer,
            "outside": [split(a.bytes)[0] / tokens - each for (a, _), each in zip(pairs, layer, strict=True)],
            "products": [split(b.kernels)[1] - split(a.kernels)[1] for a, b in pairs],
            "kernels": [split(b.kernels)[0] - split(a.kernels)[0] for a, b in pairs],
        }
    json.dump(counted, sys.stdout)


if __name__ == "__main__":
    main()
