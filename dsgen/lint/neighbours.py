"""What lies beside a config and names it: code, launch lines, files of Accelerate. Read, never run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsgen.lint.beside import names_in, read_beside
from dsgen.lint.loaders import TOLD

if TYPE_CHECKING:  # they bring more along than a lint of one file needs
    from dsgen.lint.finding import Elsewhere
    from dsgen.lint.launches import Launch
    from dsgen.lint.python.read import PythonFile
    from dsgen.target import Loader

_CODE = (".py", ".sh", ".yaml", ".yml")
# Scripts, not libraries: a folder with more than this is not looked through.
_MOST_FILES = 100
_MOST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Script:
    """A text file beside a config."""

    path: Path
    text: str


class Neighbours:
    """The files in a config's folder and in the one above that name it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @cached_property
    def _told(self) -> "tuple[tuple[Script, Loader], ...]":
        """Who is told of the file, and by whom it is loaded then."""
        name = self.file.name
        at = rf"[\"']?(?:[^\"'\s,()]*/)?{re.escape(name)}(?![\w.])"
        return tuple(
            (script, loader)
            for script in self._scripts
            if name in script.text
            for loader, told in TOLD
            if re.search(told.replace("FILE", at), script.text)
        )

    @property
    def _scripts(self) -> tuple[Script, ...]:
        folder = self.file.parent
        return tuple(script for place in (folder, *_above(folder)) for script in _in_folder(place))

    @cached_property
    def loader(self) -> "Loader | None":
        """The loader that is told of this file; None for none, or more than one."""
        found = {loader for _, loader in self._told}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def code(self) -> "tuple[tuple[str, PythonFile], ...]":
        """The Python files that hand the config to whoever loads it, by name."""
        scripts = {script.path: script for script, _ in self._told if script.path.suffix == ".py"}
        if not scripts:
            return ()
        from dsgen.lint.python.read import read_python_text

        read = [(shown(path), read_python_text(script.text, path.parent)) for path, script in scripts.items()]
        return tuple((name, file) for name, file in read if file.is_read)

    @cached_property
    def arguments(self) -> "tuple[tuple[dict[str, str], Elsewhere], ...]":
        """The options on the launch lines that name the config, each with its place."""
        from dsgen.lint.finding import Elsewhere
        from dsgen.lint.launches import arguments_in

        scripts = {script.path: script for script, _ in self._told if script.path.suffix == ".sh"}
        return tuple(
            (options, Elsewhere(shown(path), place))
            for path, script in scripts.items()
            for options, place in arguments_in(script.text, self.file.name)
        )

    def started_by_accelerate(self) -> "tuple[tuple[str, PythonFile], ...]":
        """The Python files that are started with this file of Accelerate: those of the launch lines that name it;
        without such a line those beside it that make an ``Accelerator``, if it is the only such file there."""
        lines = [s.text for s in self._scripts if s.path.suffix == ".sh" and self.file.name in s.text]
        codes = [s for s in self._scripts if s.path.suffix == ".py" and "Accelerator(" in s.text]
        if lines:
            codes = [code for code in codes if any(code.path.name in text for text in lines)]
        elif any(self._is_another(script) for script in self._scripts):
            return ()
        from dsgen.lint.python.read import read_python_text

        read = [(shown(code.path), read_python_text(code.text, code.path.parent)) for code in codes]
        return tuple((name, file) for name, file in read if file.is_read)

    def _is_another(self, script: Script) -> bool:
        """Whether it is a file of Accelerate besides this one."""
        is_yaml = script.path.suffix in (".yaml", ".yml")
        return is_yaml and "distributed_type:" in script.text and script.path != self.file

    @cached_property
    def launched(self) -> dict[str, Any]:
        """World size and processes per node by the lines that start the training, where they agree."""
        scripts = {script.path: script for script, _ in self._told}
        found = [one for script in scripts.values() for one in self._launches(script)]
        sizes = {launch.world_size for launch, _ in found}
        if len(sizes) != 1 or None in sizes:
            return {}
        launch, path = found[0]
        per_node = {one.gpus_per_node for one, _ in found}
        return {
            "world_size": launch.world_size,
            "gpus_per_node": launch.gpus_per_node if len(per_node) == 1 else None,
            "launch": _elsewhere(path, launch),
        }

    def _launches(self, script: Script) -> "Iterator[tuple[Launch, Path]]":
        from dsgen.lint.launches import accelerate_file, launches_in

        if script.path.suffix == ".sh":
            yield from ((launch, script.path) for launch in launches_in(script.text, self.file.name))
            return
        lines = [
            (launch, other.path)
            for other in self._scripts
            if other.path.suffix == ".sh" and script.path.name in other.text
            for launch in launches_in(other.text, script.path.name)
        ]
        if script.path.suffix == ".py":
            yield from lines
            return
        own = accelerate_file(script.text)
        # The flag of the command decides over the file that it names.
        stated = [(launch, path) for launch, path in lines if launch.world_size is not None]
        yield from stated or ([(own, script.path)] if own else [])


def shown(path: Path) -> str:
    """A path as people name it: from where they are, if it lies below."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return str(path)


def _elsewhere(path: Path, launch: "Launch") -> "Elsewhere":
    from dsgen.lint.finding import Elsewhere

    return Elsewhere(shown(path), launch.range)


def _above(folder: Path) -> tuple[Path, ...]:
    """The folder above, unless this one is a project of its own."""
    is_root = any((folder / name).exists() for name in (".git", "pyproject.toml"))
    return () if is_root or folder.parent == folder else (folder.parent,)


@cache
def _in_folder(folder: Path) -> tuple[Script, ...]:
    """The scripts in a folder that may have to do with DeepSpeed."""
    files = [folder / name for name in names_in(folder) if name.endswith(_CODE)]
    if len(files) > _MOST_FILES:
        return ()
    read = (Script(file, read_beside(file, _MOST_BYTES).decode(errors="replace")) for file in files)
    # Launch lines need not speak of DeepSpeed, nor code that leaves it to Accelerate.
    words = ("eep", "Accelerator(", "distributed_type:")
    return tuple(script for script in read if script.path.suffix == ".sh" or any(word in script.text for word in words))


def forget_scripts() -> None:
    """What was read is read anew."""
    _in_folder.cache_clear()
