"""Generated Python files, loaded from where they lie."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


def load_file(path: str, name: str = "dsgen_smoke_model") -> Any:
    """One file that imports nothing beside it."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def load_from_folder(folder: str, name: str) -> Any:
    """A module of a folder whose files import each other; those of another folder are forgotten."""
    for path in Path(folder).glob("*.py"):
        sys.modules.pop(path.stem, None)
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)
