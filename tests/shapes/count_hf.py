"""Counts the parameters of Hugging Face models on the meta device; run as its own process.

stdin: {"folder": where to save, "cases": {name: {"class": ..., "config": {...}}}}
stdout: {name: parameters}; each case's config.json is saved under folder/name.
"""

import json
import sys
from pathlib import Path

import torch
import transformers


def count(model: torch.nn.Module) -> int:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    # Router corrections are buffers there; dsgen counts them, since they are stored and loaded alike.
    return parameters + sum(b.numel() for name, b in model.named_buffers() if name.endswith("e_score_correction_bias"))


def main() -> None:
    order = json.load(sys.stdin)
    counts = {}
    for name, case in order["cases"].items():
        model_class = getattr(transformers, case["class"])
        config = model_class.config_class(**case["config"])
        config.architectures = [case["class"]]
        config.save_pretrained(Path(order["folder"]) / name)
        loaded = transformers.AutoConfig.from_pretrained(Path(order["folder"]) / name)
        with torch.device("meta"):
            counts[name] = count(model_class(loaded))
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
