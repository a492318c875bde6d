"""A folder with FSDP2 code: what can be read of it without running it, and where its copy lies."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsgen.smoke.adapt.batch import ACCUMULATION, MICRO_BATCH
from dsgen.smoke.change import Change

_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}
_LARGE = 5_000_000
_CODE = ("*.py", "*.json", "launch/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What train.py and sharding.py say of themselves."""

    precision: str
    micro_batch: int
    accumulation: int
    changes: tuple[Change, ...]
    notes: tuple[str, ...]


def read_folder(folder: Path, processes: int) -> Read:
    """Numbers that stand in the code as build writes it; what is not found counts as 1, or as fp32."""
    train, sharding = (folder / "train.py").read_text("utf-8"), (folder / "sharding.py").read_text("utf-8")
    dtype = re.search(r"param_dtype=torch\.(\w+)", sharding)
    micro, accumulation = _constant(train, "MICRO_BATCH"), _constant(train, "ACCUMULATION")
    wanted = {
        "MICRO_BATCH": (micro, min(micro, MICRO_BATCH), "a small batch is enough"),
        "ACCUMULATION": (accumulation, min(accumulation, ACCUMULATION), "two show accumulation as well as more"),
    }
    group = _constant(sharding, "SHARD_GROUP")
    notes = (f"{processes} processes make one group: give --processes a multiple of them to see groups replicate",)
    return Read(
        notes=notes if group >= processes > 1 else (),
        precision=_PRECISIONS.get(dtype[1], "fp32") if dtype else "fp32",
        micro_batch=wanted["MICRO_BATCH"][1],
        accumulation=wanted["ACCUMULATION"][1],
        changes=(
            Change(key="--size", before="full", after="tiny", why="any machine can train it"),
            *(Change(key=k, before=b, after=a, why=why) for k, (b, a, why) in wanted.items() if a != b),
        ),
    )


def _constant(source: str, name: str) -> int:
    found = re.search(rf"^{name} = (\d+)", source, re.MULTILINE)
    return int(found[1]) if found else 1


_LOOP = ("def main(", "def arguments(", "tiny_config(", "micro_batches(", "dataset(", "deepspeed.initialize(")


def has_own_loop(folder: Path) -> bool:
    """Whether train.py drives DeepSpeed's engine itself, with the names that build gives; the Trainer's does not."""
    train = folder / "train.py"
    source = train.read_text("utf-8") if train.is_file() else ""
    return all(name in source for name in _LOOP) and (folder / "model.py").is_file()


def copy_of(source: Path | Mapping[str, str], to: Path) -> Path:
    """The folder's code in a place of this run, so that nothing is written where the user has it.

    Only the files that build writes: those on top and the launchers. A folder may hold data, checkpoints, or, as
    the folder for temporary files does, this very run.
    """
    if isinstance(source, Path):
        for path in (path for pattern in _CODE for path in source.glob(pattern) if _is_code(path)):
            copy = to / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        return to
    for name, text in source.items():
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return to


def _is_code(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _LARGE
