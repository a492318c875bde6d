"""DeepSpeed configs to lint: ours, the corpus where it is at hand, and mutations of both."""

import argparse
import csv
import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hjson

from dsgen.cli.target_flags import add_target_flags, target_flags
from dsgen.lint.finding import Finding
from dsgen.lint.kinds import KINDS
from dsgen.lint.run import lint_bytes
from dsgen.lint.schema import deepspeed_schema
from dsgen.lint.target import LintTarget, make_target

DEEPSPEED = KINDS[0]
SHARED = os.environ.get("DSGEN_SHARED")

OWN: list[dict[str, Any]] = [
    {
        "train_batch_size": 32,
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_clipping": 1.0,
        "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 16, "hysteresis": 2},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "torch_adam": True}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10}},
        "zero_optimization": {
            "stage": 3,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/x", "ratio": 0.5, "pin_memory": True},
            "offload_param": {"device": "cpu", "buffer_count": 5},
            "stage3_max_live_parameters": 1e8,
            "reduce_bucket_size": "auto",
            "leaf_module": {"classes": ["Block"]},
        },
        "wandb": {"enabled": False, "project": "p"},
        "_note": "notes are free",
    },
    {
        "train_batch_size": 8,
        "bf16": {"enabled": "auto"},
        "zero_optimization": {"stage": 2, "overlap_comm": None, "allgather_partitions": True},
        "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_type": "linear"}},
        "optimizer": {"type": "lion", "params": {"lr": "auto", "weight_decay": 0}},
        "compile": {"deepcompile": True, "passes": ["z1"]},
        "flops_profiler": {"enabled": True, "top_modules": 1},
        "amp": {"enabled": False},
    },
]


@dataclass(frozen=True)
class Real:
    """One file of the corpus with what is known of it."""

    file: str
    path: Path
    works: bool
    """An official example or CI file."""
    accepted: bool
    """By DeepSpeed 0.19.6 itself."""
    refusal: str
    """What that DeepSpeed said; empty where it accepts, or where the file is only a template."""


@cache
def corpus() -> list[Real]:
    """Every DeepSpeed JSON of the corpus; none where DSGEN_SHARED is unset."""
    if SHARED is None:
        return []
    folder = Path(SHARED) / "corpus"
    with open(folder / "INDEX.tsv", encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        Real(
            file=row["file"],
            path=folder / row["file"],
            works=row["known_to_work"].startswith("yes"),
            accepted="accepts" in row["loader_check"],
            refusal=row["loader_check"] if "rejects" in row["loader_check"] else "",
        )
        for row in rows
        if row["kind"] == "deepspeed_json"
    ]


@cache
def real_values() -> tuple[dict[str, Any], ...]:
    """Our configs and the readable ones of the corpus."""
    found = []
    for real in corpus():
        try:
            value = json.loads(json.dumps(hjson.loads(real.path.read_text("utf-8"))))
        except ValueError:
            continue
        found.append(value)
    return (*OWN, *(value for value in found if isinstance(value, dict)))


def lint(config: Any, target: LintTarget | None = None, name: str = "ds_config.json") -> list[Finding]:
    """Findings in a config, given as text or as values."""
    text = config if isinstance(config, str) else json.dumps(config)
    return lint_bytes(name, text.encode("utf-8", "surrogatepass"), DEEPSPEED, target or make_target())


def target_by(flags: Sequence[str]) -> LintTarget:
    """The target that these flags of the command state."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_target_flags(parser)
    said = {key: value for key, value in target_flags(parser.parse_args(flags)).items() if value is not None}
    return make_target(**said)


SCRAPS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 4, 0.5, 1.5, 2.0, 5e8, 1e12, "", "auto", "2", "true", "cpu", "nvme", "none"),
    *("fp32", "AdamW", "SGD", "WarmupLR", [], [1, 2], ["a"], {}, {"enabled": True}, {"device": "cpu"}, {"x": 1}),
]


def _known_keys(schema: Any) -> set[str]:
    inner = {key for value in schema.values() if isinstance(value, dict) for key in _known_keys(value)}
    return inner | set(schema.get("properties", {})) if isinstance(schema, dict) else inner


KEYS = sorted(_known_keys(deepspeed_schema()))


@dataclass(frozen=True)
class Mutation:
    """A copy of a config with one place changed."""

    config: Any
    kind: str
    section: str
    """The top-level key under which the place lies; "" for the top level itself."""


def mutation(config: Any, rng: random.Random) -> Mutation:
    """A key renamed, misspelt, moved in, taken out, or its value replaced by another or by one at a bound."""
    copy = json.loads(json.dumps(config))
    section, chosen = rng.choice(list(_objects(copy, "")))
    key = rng.choice(sorted(chosen)) if chosen else ""
    kind = "value"
    match rng.randrange(7):
        case 0 if chosen:
            chosen[rng.choice(KEYS)], kind = chosen.pop(key), "renamed"
        case 1 if len(key) > 2:
            at = rng.randrange(len(key) - 1)
            chosen[key[:at] + key[at + 1 :]], kind = chosen.pop(key), "misspelt"
        case 2:
            chosen[rng.choice(KEYS)], kind = rng.choice(SCRAPS), "added"
        case 3 if chosen:
            del chosen[key]
            kind = "removed"
        case 4 if chosen:
            chosen[key], kind = rng.choice((-1, 0, 1, 2, 3, 4, 0.0, 1.0, 1.5)), "bound"
        case _ if chosen:
            chosen[key] = rng.choice(SCRAPS)
    return Mutation(copy, kind, section)


def mutated(config: Any, rng: random.Random) -> Any:
    """A copy with one place changed."""
    return mutation(config, rng).config


def _objects(value: Any, section: str) -> Any:
    if isinstance(value, dict):
        yield section, value
        for key, inner in value.items():
            yield from _objects(inner, section or key)
