"""The file: never half of one, never over another one unless told so."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from dsgen.errors import InputError, Place, Problem


def refuse_existing(path: Path, *, force: bool) -> None:
    """Before anything is asked: what is there stays there.

    Raises InputError.
    """
    if path.is_dir():
        raise InputError(Problem("is a folder", Place(str(path)), f"name a file, such as {path / 'spec.yaml'}"))
    if not force and os.path.lexists(path):
        raise InputError(Problem("exists already", Place(str(path)), "another -o, or --force to replace it"))


def save(path: Path, text: str, *, force: bool) -> None:
    """The whole text or nothing; without ``force`` not even over a file that came in between."""
    try:
        handle, draft = mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
    except OSError as error:
        raise InputError(Problem(f"cannot be written: {error.strerror or error}", Place(str(path)))) from None
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(draft, 0o666 & ~_umask())  # noqa: PTH101 - a path of tempfile is text
        if force:
            os.replace(draft, path)  # noqa: PTH105
        else:
            os.link(draft, path)
    except FileExistsError:
        refuse_existing(path, force=False)
    except OSError as error:
        raise InputError(Problem(f"cannot be written: {error.strerror or error}", Place(str(path)))) from None
    finally:
        with suppress(FileNotFoundError):
            Path(draft).unlink()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
