"""A config that the user names, for commands that say what stands in it rather than what is wrong."""

from typing import TYPE_CHECKING

from dsgen.errors import InputError, Place
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.files import Source, sources
from dsgen.lint.target import make_target

if TYPE_CHECKING:  # it brings the whole spec along
    from dsgen.target import Loader


def read_named(path: str, loaded_by: "Loader | None") -> ConfigFile:
    """The DeepSpeed config at a path, or on standard input.

    Raises:
        InputError: it cannot be read, or is none.
    """
    found = [source for source in sources([path]) if source.kind.name == "deepspeed"]
    if len(found) != 1:
        raise InputError.at("is not one DeepSpeed config", Place(path), help="name one JSON file")
    return read_source(found[0], loaded_by)


def read_source(source: Source, loaded_by: "Loader | None") -> ConfigFile:
    """The config of one file.

    Raises:
        InputError: it cannot be read, or holds no object.
    """
    file = source.kind.read(source.data, make_target(loaded_by=loaded_by), source.name)
    assert isinstance(file, ConfigFile), "callers name configs"
    check_read(source, file)
    if not file.is_read:
        raise InputError.at("holds no object", Place(source.name), help='write {"train_batch_size": ...}')
    return file


def check_read(source: Source, file: ConfigFile) -> None:
    """Nothing, if the text could be read.

    Raises:
        InputError: where it stops being what it should be.
    """
    problem = file.document.problem
    if problem is not None:
        line, column = file.document.lines.place(problem.start)
        raise InputError.at(str(problem), Place(source.name, line, column), help=problem.help)
