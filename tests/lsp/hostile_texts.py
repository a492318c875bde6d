"""Documents that nobody writes on purpose, and places in them."""

import random
from collections.abc import Iterator

TEXTS: list[tuple[str, str]] = [
    ("ds.json", '{"train_batch_size": ' * 3000),
    ("ds.json", '{"train_batch_size": 8, "x": ' + "[" * 100_000),
    ("ds.json", '{"train_batch_size": ' + "9" * 10_000 + "}"),
    ("ds.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 1e999, "\ud800": "\udc00\0"}}'),
    ("ds.json", '\ufeff{"train_batch_size": 8, "fp16": {"fp16": {"enabled": {"enabled": []}}}}'),
    ("ds.json", '{"train_batch_size": 8, "train_batch_size": {}, "train_batch_size": []}'),
    ("ds.json", "train_batch_size: 8\nzero_optimization: '''\n" + "x\n" * 5000),
    ("ds.json", '{"train_batch_size": 8, /* ' + "*" * 50_000),
    ("ds.json", '{"train_batch_size": 8, "optimizer": {"type": ["x"], "params": "y"}, "scheduler": null}'),
    ("ds.yaml", "train_batch_size: &a 8\nzero_optimization: *b\n"),
    (
        "ds.yaml",
        "a: &a [x, x, x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a, *a]\n" for n in range(9)) + "train_batch_size: 1",
    ),
    ("ds.yaml", "deepspeed_config:\n  zero_stage: !!python/object/apply:os.system ['true']\n"),
    ("ds.yaml", "- " * 5000 + "train_batch_size: 1"),
    ("ds.yaml", "deepspeed_config:\n" + "\n".join(" " * n + f"k{n}:" for n in range(500))),
    ("train.py", "import deepspeed\ndeepspeed.initialize(" + "(" * 5000),
    ("train.py", "import deepspeed\nx = {'zero_optimization': " + "{'a': " * 3000),
    ("train.py", "import torch\nloss.backward()\n" + "if x:\n" * 200 + "\tpass"),
    ("train.py", "import torch\nx.backward()\n" + "-" * 50_000 + "1"),
    ("train.py", "# coding: utf-7\nimport torch\nx.backward()\n"),
    ("train.py", "import torch\nx.backward()\n'\ud800'\n"),
    ("train.py", "import torch\x0c\nx.backward()\u2028\n\r\r\n{'a': 1"),
]
CONFIG = """\
{
  "train_batch_size": 8, // eight
  "fp16": {"enabled": "auto", "loss_scale": 0},
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}},
  "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "overlap_comm": null}
}
"""
CODE = f"import deepspeed\nds_config = {CONFIG.replace('//', '#').replace('null', 'None')}\nloss.backward()\n"
YAML = """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  offload_optimizer_device: cpu
deepspeed:
  train_batch_size: 8
  zero_optimization: {stage: 2}
"""
_SCRAPS = [
    "",
    "{",
    "}",
    '"',
    "'",
    ":",
    ",",
    "\n",
    "\r",
    "#",
    "//",
    "/*",
    "'''",
    "\0",
    "\ufeff",
    "\ud800",
    "😀",
    "[",
    "&a ",
]


def mutated(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Endless texts with a few places changed."""
    while True:
        name, text = rng.choice([("ds.json", CONFIG), ("train.py", CODE), ("ds.yaml", YAML)])
        for _ in range(rng.randrange(1, 4)):
            start = rng.randrange(len(text))
            text = text[:start] + rng.choice(_SCRAPS) + text[start + rng.choice([0, 1, 1, 20, 400]) :] or " "
        yield name, text
