"""Counts what autograd keeps of one decoder layer of Hugging Face models; run as its own process.

stdin: {name: {"class": base model, "config": {...}, "attention": ..., "dtype": ..., "hidden", "batch", "sequence"}}
stdout: {name: bytes per token}. One layer is the difference between models of two layers and of one.
"""

import json
import sys
import warnings

import torch

warnings.simplefilter("ignore")
import transformers  # noqa: E402 (its import warns)


def saved_bytes(model: torch.nn.Module, inputs: torch.Tensor) -> int:
    """Bytes of the distinct storages that autograd saves, weights left out."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in own:
            kept[address] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(inputs_embeds=inputs, use_cache=False)
    size = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    del output
    return size


def main() -> None:
    torch.set_num_threads(1)
    counted = {}
    for name, case in json.load(sys.stdin).items():
        model_class = getattr(transformers, case["class"])
        dtype = getattr(torch, case["dtype"])
        shape = (case["batch"], case["sequence"], case["hidden"])
        inputs = torch.randn(shape, dtype=dtype, requires_grad=True)
        sizes = []
        for layers in (1, 2):
            config = model_class.config_class(**case["config"], num_hidden_layers=layers)
            config._attn_implementation = case["attention"]
            sizes.append(saved_bytes(model_class(config).to(dtype).train(), inputs))
        counted[name] = (sizes[1] - sizes[0]) / (case["batch"] * case["sequence"])
    json.dump(counted, sys.stdout)


if __name__ == "__main__":
    main()
