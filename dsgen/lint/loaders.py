"""Who loads a config, where code or a launch line beside it says so by the file's name."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dsgen.lint.beside import names_in, read_beside

if TYPE_CHECKING:  # it brings the whole spec along, which a lint does not need
    from dsgen.target import Loader

# Arguments before the one that counts, with calls in them two deep.
_BEFORE = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*?"
# How each loader is told of a file, with FILE for its path up to the name.
_TOLD: "tuple[tuple[Loader, str], ...]" = (
    ("deepspeed", r"\bdeepspeed\.initialize\(" + _BEFORE + r"\bconfig(?:_params)?\s*=\s*FILE"),
    ("deepspeed", r"--deepspeed_config[=\s]+FILE"),
    ("transformers", r"\b(?:TrainingArguments|\w+Config)\(" + _BEFORE + r"\bdeepspeed\s*=\s*FILE"),
    ("transformers", r"--deepspeed[=\s]+FILE"),
    ("accelerate", r"\bhf_ds_config\s*=\s*FILE"),
    ("accelerate", r"\bdeepspeed_config_file\s*:\s*FILE"),
    ("accelerate", r"--deepspeed_config_file[=\s]+FILE"),
    ("lightning", r"\bDeepSpeedStrategy\(" + _BEFORE + r"\bconfig\s*=\s*FILE"),
)
_CODE = (".py", ".sh", ".yaml", ".yml")
# Scripts, not libraries: a folder with more than this is not looked through.
_MOST_FILES = 100
_MOST_BYTES = 256 << 10


def loader_of(file: Path) -> "Loader | None":
    """The loader that is told of this file in its folder or in the one above; None for none, or more than one."""
    found = {
        loader
        for folder in (file.parent, *_above(file.parent))
        for text in _texts(folder)
        if file.name in text
        for loader, told in _TOLD
        if re.search(told.replace("FILE", rf"[\"']?(?:[^\"'\s,()]*/)?{re.escape(file.name)}(?![\w.])"), text)
    }
    return found.pop() if len(found) == 1 else None


def _above(folder: Path) -> tuple[Path, ...]:
    """The folder above, unless this one is a project of its own."""
    is_root = any((folder / name).exists() for name in (".git", "pyproject.toml"))
    return () if is_root or folder.parent == folder else (folder.parent,)


@cache
def _texts(folder: Path) -> tuple[str, ...]:
    """The scripts in a folder that speak of DeepSpeed."""
    files = [folder / name for name in names_in(folder) if name.endswith(_CODE)]
    if len(files) > _MOST_FILES:
        return ()
    texts = (read_beside(file, _MOST_BYTES).decode(errors="replace") for file in files)
    return tuple(text for text in texts if "eep" in text)


def forget_scripts() -> None:
    """What was read is read anew."""
    _texts.cache_clear()
