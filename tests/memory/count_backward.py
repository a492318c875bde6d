"""Counts the most tensor bytes alive in the backward pass of Hugging Face's Llama, on the CPU; run as its own process.

stdin: {name: {"config": {...}, "attention": ..., "checkpointing": bool, "batch": ..., "sequence": ...}}
stdout: {name: bytes}; bf16 weights included, no optimizer.
"""

import json
import sys
import warnings
import weakref
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

warnings.simplefilter("ignore")
import transformers  # noqa: E402 (its import warns)


class LiveBytes(TorchDispatchMode):
    """Sums the storages of all tensors that operations return while they are alive."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.live = self.peak = 0

    def add(self, tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.sizes:
            self.sizes[key] = storage.nbytes()
            self.live += storage.nbytes()
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self.remove, key)

    def remove(self, key: int) -> None:
        self.live -= self.sizes.pop(key)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        _pytree.tree_map(self.add, result)
        return result


def most_in_backward(case: dict[str, Any]) -> int:
    config = transformers.LlamaConfig(**case["config"], use_cache=False)
    config._attn_implementation = case["attention"]
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).train()
    if case["checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    ids = torch.randint(0, config.vocab_size, (case["batch"], case["sequence"]))
    count = LiveBytes()
    for parameter in model.parameters():
        count.add(parameter)
    with count:
        loss = model(input_ids=ids, labels=ids).loss
        count.peak = count.live
        loss.backward()
    return count.peak


def main() -> None:
    torch.set_num_threads(1)
    json.dump({name: most_in_backward(case) for name, case in json.load(sys.stdin).items()}, sys.stdout)


if __name__ == "__main__":
    main()
