"""A trial as the worker reads it."""

import json
from pathlib import Path

from dsgen.smoke.proof.values import Trial

STEPS = 4
"""Enough for momentum and second moments to matter, and for each step's data to be another."""
_TORCH_NAMES = {"fp32": "fp32", "bf16": "bfloat16"}


def trial_request(trial: Trial, where: dict[str, str], file: Path, seed: int) -> dict[str, object]:
    """``where``: the model's file (``model``) or the folder of the code (``folder``); ``file``: for the config."""
    content = dict(trial.content)
    if "config" in content:
        # The worker writes the threshold into it, which it knows only when it has seen the first gradient.
        file.write_text(json.dumps(content["config"], indent=2), encoding="utf-8")
        content["config"] = str(file)
    return {
        "kind": "trial",
        "subject": trial.subject,
        **where,
        **content,
        "precision": _TORCH_NAMES[trial.precision],
        "sums": trial.sums,
        "reference": trial.optimizer,
        "clip": trial.clip,
        "micro_batch": trial.micro_batch,
        "accumulation": trial.accumulation,
        "uneven": trial.uneven,
        "steps": STEPS,
        "seed": seed,
    }
