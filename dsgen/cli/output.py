"""Where commands write: one file or a folder, each file atomically, all of them or none."""

import contextlib
import difflib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsgen.errors import DsgenError, InputError, Place
from dsgen.formats.values import Written

# A diff that shows more than this says no more.
_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class Output:
    """What -o names."""

    path: Path
    is_folder: bool

    @classmethod
    def of(cls, text: str) -> "Output":
        """A folder if it ends in a slash, exists as one, or has no suffix; else a file."""
        if not text or "\0" in text:
            raise InputError.at(f"-o {text!r} names no file", help="write -o ds_config.json, or -o FOLDER/")
        path = Path(text)
        with _named(path):
            is_folder = text.endswith("/") or path.is_dir() or (not path.suffix and not path.exists())
        return cls(path, is_folder)

    def paths(self, written: Written) -> list[Path]:
        """Where each file goes, in the order of ``written.files``."""
        if not self.is_folder:
            return [self.path]
        return [self.path / name for name in written.files]


def save(output: Output, written: Written) -> list[Path]:
    """Writes every file beside its place first, then moves all into place; nothing half-written stays.

    A file keeps the mode that it has; a symbolic link stays one, and what it points to is replaced.
    """
    paths = output.paths(written)
    staged: list[tuple[Path, Path]] = []
    try:
        for path, (name, text) in zip(paths, written.files.items(), strict=False):
            with _named(path):
                data = text.encode("utf-8")
                staged.append(_stage(path, data, executable=name in written.executable, make=output.is_folder))
        for temporary, place in staged:
            with _named(place):
                temporary.replace(place)
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    return paths


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file anew: beside its place first, then into place, with the mode that it has."""
    with _named(path):
        temporary, place = _stage(path, data, executable=False, make=False)
        try:
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)


def _stage(path: Path, data: bytes, *, executable: bool, make: bool) -> tuple[Path, Path]:
    # Asked of the path as it was given: what /dev/stdout resolves to may have no name.
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError.at("is no ordinary file", Place(str(path)), "leave -o out: the config goes to standard output")
    place = path.resolve()
    if place.is_dir():
        raise InputError.at(
            "is a folder", Place(str(path)), "name a file, or write into the folder with a slash at its end"
        )
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError("write-protected")
    if make:
        place.parent.mkdir(parents=True, exist_ok=True)
    elif not place.parent.is_dir():
        raise InputError.at(f"there is no folder {path.parent}", Place(str(path)), f"mkdir -p {path.parent}")
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:64]}.")
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode(place, executable))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary, place


def _mode(place: Path, executable: bool) -> int:
    """The mode that the file has, or a new file's under the caller's umask."""
    if place.exists():
        mode = stat.S_IMODE(place.stat().st_mode)
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    # Whoever may read a launcher may run it.
    return mode | (mode & 0o444) >> 2 if executable else mode


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error of the operating system as one that a person can read."""
    try:
        yield
    except (OSError, UnicodeEncodeError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DsgenError.at(f"can't write: {said}", Place(str(path))) from error


def differences(output: Output, written: Written) -> list[str]:
    """What ``--check`` prints: a short diff for each file that is absent or differs; empty where all agree."""
    lines: list[str] = []
    for path, (name, text) in zip(output.paths(written), written.files.items(), strict=False):
        try:
            there = path.read_bytes()
        except OSError as error:
            lines.append(f"{path}: {error.strerror or error}\n")
            continue
        if there != text.encode("utf-8"):
            lines += _diff(path, there.decode("utf-8", "replace"), text)
        elif name in written.executable and not os.access(path, os.X_OK):
            lines.append(f"{path}: is not executable\n")
    return lines


def _diff(path: Path, there: str, text: str) -> list[str]:
    diff = list(
        difflib.unified_diff(
            there.splitlines(keepends=True),
            text.splitlines(keepends=True),
            str(path),
            f"{path} as dsgen writes it",
            n=1,
        )
    )
    shown = [line if line.endswith("\n") else f"{line}\n" for line in diff[:_DIFF_LINES]]
    more = len(diff) - len(shown)
    return [*shown, f"... {more} more lines\n"] if more > 0 else shown or [f"{path}: line ends differ\n"]
