"""Checkpoints: every rank writes its own shards; any number of ranks can read them."""

import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful


class TrainingState(Stateful):
    """Weights, optimizer, and whatever else has a ``state_dict``, under its name."""

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, **others: Any
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.others = others

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        others = {name: part.state_dict() for name, part in self.others.items()}
        return {"model": model, "optimizer": optimizer, **others}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optimizer"],
        )
        for name, part in self.others.items():
            part.load_state_dict(state_dict[name])


def save(state: TrainingState, folder: Path, step: int, keep: int) -> None:
    """Then leaves ``keep`` checkpoints: this one, and the newest before it."""
    saved = folder / f"step-{step:08d}"
    dcp.save({"training": state}, checkpoint_id=saved)
    if dist.get_rank() == 0:  # has written .metadata, after all ranks had written
        older = [path for path in whole(folder) if path.name < saved.name]
        for path in older[::-1][keep - 1 :]:
            shutil.rmtree(path)


def load(state: TrainingState, folder: Path) -> None:
    """The newest checkpoint that is whole."""
    found = whole(folder)
    if not found:
        raise SystemExit(f"no checkpoint in {folder}")
    dcp.load({"training": state}, checkpoint_id=found[-1])


def whole(folder: Path) -> list[Path]:
    """Checkpoints from the oldest to the newest; .metadata is written last."""
    return sorted(path.parent for path in folder.glob("step-*/.metadata"))
