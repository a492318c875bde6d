"""Files that people have already, told apart by what is in them, and read into findings."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsgen.documents.document import Document, DocumentError, Lines
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.source import MAX_BYTES, decode, standard_input
from dsgen.documents.yaml_text import read_yaml
from dsgen.errors import InputError, Place, Problem
from dsgen.formats.accelerate.read import is_accelerate
from dsgen.formats.accelerate.read import read as read_accelerate
from dsgen.formats.deepspeed.read import read as read_deepspeed
from dsgen.formats.hf.read import read as read_arguments
from dsgen.formats.hf.read import table
from dsgen.formats.hf.read.arguments import known_keys, named_config
from dsgen.formats.hf.read.code import read_code
from dsgen.formats.launch.read import Launch
from dsgen.formats.launch.read import read as read_launch
from dsgen.init.values import Findings, Given, Unknown
from dsgen.reading import LeftOut, Reading, Said, SpecPath
from dsgen.target import Loader, Target

_OF_DEEPSPEED = frozenset(
    {
        "zero_optimization",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "fp16",
        "bf16",
        "zero_allow_untested_optimizer",
        "gradient_clipping",
    }
)
_STDIN = "-"
_BEFORE = ("srun ", "sbatch ", "mpirun ", "env ", "nohup ", "sudo ", "time ", "exec ")
_LAUNCHERS = ("torchrun ", "deepspeed ", "accelerate ", "python", "CUDA_VISIBLE_DEVICES=", *_BEFORE)


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or a launch line, as it was given."""

    name: str
    text: str
    folder: Path
    value: Any = None
    """The mapping that it holds; None for code and launches."""
    document: Document | None = None
    launch: Launch | None = None
    is_code: bool = False
    is_inline: bool = False
    """A config that stands among arguments: its lines are not the file's."""

    @property
    def holds(self) -> str:
        """What kind it is: deepspeed, accelerate, arguments, code, launch."""
        if self.launch is not None:
            return "launch"
        if self.is_code:
            return "code"
        if is_accelerate(self.value):
            return "accelerate"
        is_config = is_deepspeed(self.value)
        # bf16: true is an argument, bf16: {...} a section.
        flat = any(isinstance(self.value.get(key), bool | str) for key in ("bf16", "fp16"))
        return "deepspeed" if is_config and not flat else "arguments"


def is_deepspeed(value: Mapping[str, Any]) -> bool:
    """Whether a mapping has keys that only a DeepSpeed config has, or sections where others have words."""
    sections = ("optimizer", "scheduler", "activation_checkpointing", "zero_optimization")
    return bool(_OF_DEEPSPEED & value.keys()) or any(isinstance(value.get(key), Mapping) for key in sections)


def open_source(given: str) -> Source:
    """The file of that name, or the launch line that it is.

    Raises InputError: it cannot be read, or is nothing that a spec can be made of.
    """
    if not Path(given).exists() and given.lstrip().startswith(_LAUNCHERS):
        launch = read_launch(given)
        if launch is not None:
            return Source("the launch line", given, Path(), launch=launch)
    return _parsed(given, text_of(given))


def text_of(path: str) -> str:
    """A small text file; InputError with its name where it cannot be read."""
    try:
        if path == _STDIN:
            return decode(standard_input(MAX_BYTES + 1))
        with open(path, "rb") as stream:
            return decode(stream.read(MAX_BYTES + 1))
    except DocumentError as problem:
        raise InputError(Problem(problem.message, Place(path), problem.help)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(Problem(f"cannot be read: {reason}", Place(path))) from None


def _parsed(path: str, text: str) -> Source:
    folder, suffix = Path(path).absolute().parent, Path(path).suffix.lower()
    if suffix == ".py":
        return Source(path, text, folder, is_code=True)
    if suffix in (".sh", ".bash", ".sbatch", ".slurm", ".txt", ""):
        launch = read_launch(text)
        if launch is not None:
            return Source(path, text, folder, launch=launch)
    # Without a suffix that says so, what starts with no brace is YAML.
    as_yaml = suffix in (".yaml", ".yml") or not (suffix in (".json", ".hjson") or text.lstrip().startswith("{"))
    try:
        root = read_yaml(text) if as_yaml else read_hjson(text)
    except DocumentError as problem:
        line, column = Lines(text).place(problem.start)
        raise InputError(Problem(problem.message, Place(path, line, column), problem.help)) from None
    if not isinstance(root.value, dict) or not (_is_known(root.value)):
        help = "a DeepSpeed config, training arguments (YAML, JSON or Python), accelerate's config, or a launch line"
        raise InputError(Problem("is nothing that a spec can be made of", Place(path), help))
    return Source(path, text, folder, root.value, Document(text, root))


def _is_known(value: Mapping[str, Any]) -> bool:
    return is_accelerate(value) or is_deepspeed(value) or bool(known_keys() & value.keys())


def inline_config(value: Mapping[str, Any], name: str, folder: Path) -> Source:
    """A DeepSpeed config that stands among training arguments."""
    text = json.dumps(value)
    return Source(name, text, folder, dict(value), Document(text, read_hjson(text)), is_inline=True)


def arguments_of(source: Source) -> tuple[Mapping[str, Any], Mapping[str, int], tuple[LeftOut, ...]]:
    """Training arguments by name, the lines where they stand, and what is not written out."""
    if source.launch is not None:
        relevant = known_keys()
        left = tuple(each for each in source.launch.left_out if each.key in relevant or "n" in each.key[:1])
        return source.launch.arguments, {}, left
    if source.is_code:
        code = read_code(source.text, source.name)
        relevant = known_keys()
        return (
            code.arguments,
            code.lines,
            tuple(left for left in code.unknown if left.key in relevant or "*" in left.key),
        )
    return (source.value if source.holds == "arguments" else {}), {}, ()


def config_named_by(source: Source) -> str | Mapping[str, Any] | None:
    """The DeepSpeed config that a source names or holds."""
    if source.holds == "accelerate":
        return read_accelerate(source.value).config_file
    if source.holds == "deepspeed":
        return None
    named = named_config(arguments_of(source)[0])
    return named.value if named is not None else None


def from_config(source: Source, loader: Loader) -> Findings:
    """A DeepSpeed config's findings; what it leaves open is the loader's to fill."""
    assert source.document is not None
    reading = read_deepspeed(source.document, Target(loaded_by=loader))
    return _findings(reading, source, {})


def from_arguments(source: Source) -> Findings:
    """What training arguments fix."""
    given, lines, left = arguments_of(source)
    reading = read_arguments(given)
    found = _findings(reading, source, lines)
    paths: Mapping[str, SpecPath] = {
        **table.COUNTS,
        **table.NUMBERS,
        "max_steps": ("training", "scheduler", "total_steps"),
    }
    unknown = [
        Unknown(paths[each.key], _EXAMPLES.get(each.key, "1"), f"{source.name}: {each.key}: {each.why}")
        for each in left
        if each.key in paths
    ]
    notes = (f"{source.name}: {each.key}: {each.why}" for each in left if each.key not in paths)
    return Findings(given=found.given, unknown=tuple(unknown), notes=(*found.notes, *notes), sources=found.sources)


_EXAMPLES = {
    "max_steps": "10000",
    "learning_rate": "2e-5",
    "weight_decay": "0.0",
    **dict.fromkeys(table.LENGTH, "4096"),
}


def from_said(said: Iterable[Said], source: Source) -> Findings:
    """What a launch or accelerate's config fixes."""
    return Findings(given=tuple(_given(each, source, {}) for each in said), sources=(source.name,))


def _findings(reading: Reading, source: Source, lines: Mapping[str, int]) -> Findings:
    return Findings(
        given=tuple(_given(each, source, lines) for each in reading.said),
        notes=tuple(f"{source.name}: {each.key}: not carried: {each.why}" for each in reading.not_carried),
        sources=(source.name,),
    )


def _given(said: Said, source: Source, lines: Mapping[str, int]) -> Given:
    comment = _comment(said, source, lines)
    return Given(said.path, said.value, comment, is_default=said.at is None or comment.endswith(_DEFAULT))


_DEFAULT = ", the default"


def _comment(said: Said, source: Source, lines: Mapping[str, int]) -> str:
    """Who says so: the file, the line, the key."""
    if said.at is None:
        return f"{source.name}: {said.why}"
    if source.launch is not None:
        return f"{source.name}: {said.why or said.at[0]}"
    key = ".".join(map(str, said.at))
    line = lines.get(key) or _line_of(source, said.at)
    if source.is_code and line is None:
        return f"{source.name}: {key}{_DEFAULT}"
    place = f"{source.name}:{line}" if line else source.name
    return f"{place}: {key}{f', {said.why}' if said.why else ''}"


def _line_of(source: Source, at: tuple[str | int, ...]) -> int | None:
    if source.document is None or source.is_inline:
        return None
    member = source.document.member(at)
    return source.document.lines.place(member.key_start)[0] if member is not None else None


def found_beside(name: str, source: Source) -> str | None:
    """A named file, from where people start their training, or beside the file that names it."""
    for path in (Path(name), source.folder / name):
        try:
            if path.is_file():
                return str(path)
        except (OSError, ValueError):  # a name that is no file's
            return None
    return None
