"""Kinds of files that can be linted: how they are told apart and read. A kind's rules lie in ``rules/<kind>/``."""

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from dsgen.documents.document import Path, Range
from dsgen.documents.source import MAX_BYTES
from dsgen.lint.finding import Fix
from dsgen.lint.ignores import Ignore
from dsgen.lint.mark import Change, On
from dsgen.lint.target import LintTarget


class Readable(Protocol):
    """What the runner needs of a file that was read; what rules see beyond it is the kind's own."""

    @property
    def is_read(self) -> bool:
        """Whether rules have something to look at."""

    @property
    def ignores(self) -> tuple[Ignore, ...]:
        """The comments that hide findings."""

    def locate(self, where: Any, on: On = "value") -> Range:
        """Lines and columns of what a mark points at."""

    def path_of(self, where: Any) -> Path | None:
        """Keys to what a mark points at; None where keys mean nothing."""

    def topics(self, target: LintTarget) -> Set[str] | None:
        """What the file has that rules are about; None where every rule has to look."""

    def fix(self, change: Change) -> Fix | None:
        """The edits of a change; None where it cannot be made."""


@dataclass(frozen=True, slots=True)
class Held:
    """A DeepSpeed config that a file holds besides what it is itself."""

    config: Readable
    target: LintTarget
    left_open: Readable | None = None
    """The config with what nobody can tell left open, where ``config`` lacks it; only what both have is found."""
    kind: str = "deepspeed"
    """Whose rules look at it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file."""

    name: str
    suffixes: tuple[str, ...]
    in_folders: Callable[[str], bool]
    """Whether a text found in a folder (not named by the user) is one of this kind."""
    reader: str
    """``module:function`` with (bytes, target, name) -> Readable; imported when the first such file comes."""
    most_bytes: int = MAX_BYTES
    """Larger files are not read."""
    encoding: Callable[[bytes], str] = lambda _: "utf-8"
    """The encoding in which a file that could be read is edited."""
    further: str | None = None
    """``module:function`` with (Readable, target) -> what the file holds besides."""

    def read(self, data: bytes, target: LintTarget, name: str) -> Readable:
        """Reads one file; by its name what lies beside it can be found."""
        file: Readable = _function(self.reader)(data, target, name)
        return file

    def further_configs(self, file: Readable, target: LintTarget) -> Sequence[Held]:
        """DeepSpeed configs that the file holds besides what it is itself."""
        found: Sequence[Held] = _function(self.further)(file, target) if self.further else ()
        return found


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


# Keys that a DeepSpeed config has at its top level, and those of files that hold such a config inside.
_OURS = ("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "zero_allow_untested_optimizer")
_FOREIGN = {
    *("compute_environment", "distributed_type"),  # accelerate
    *("model_type", "output_dir", "deepspeed", "deepspeed_config"),  # models and trainers
    *("num_layers", "num-layers", "pipe_parallel_size", "pipe-parallel-size"),  # GPT-NeoX, which mixes both
}
_OUR_KEY = re.compile(rf"(?:{'|'.join(_OURS)})[\"']?\s*:")
_OUR_KEY_ON_TOP = re.compile(rf"^\s?\s?\s?\s?\{{?\s*[\"']?{_OUR_KEY.pattern}", re.MULTILINE)


def _is_deepspeed(text: str) -> bool:
    if not _OUR_KEY.search(text):
        return False
    from dsgen.documents.document import DocumentError
    from dsgen.documents.hjson_text import read_hjson

    try:
        keys = set(read_hjson(text).value)
    except (DocumentError, TypeError):
        # Broken, or no object: then what stands at the margin has to tell.
        return bool(_OUR_KEY_ON_TOP.search(text)) and not any(f'"{key}"' in text for key in _FOREIGN)
    from dsgen.lint.foreign import program_of

    return bool(keys & set(_OURS)) and not keys & _FOREIGN and program_of(keys) is None


# Code that drives training itself, or hands it to a trainer.
_TRAINING_LIBRARY = re.compile(
    r"^[ \t]*(?:import\b[^\n#]*|from[ \t]+)\b(?:torch|deepspeed|accelerate|transformers|trl|lightning)\b", re.MULTILINE
)
_TRAINING = re.compile(
    r"\.backward\(|DistributedDataParallel|FullyShardedDataParallel|\bfully_shard\b|deepspeed\.initialize"
    r"|\bAccelerator\(|TrainingArguments\(|\bSFTConfig\("
)


def _is_training_code(text: str) -> bool:
    return bool(_TRAINING_LIBRARY.search(text)) and bool(_TRAINING.search(text))


def _is_yaml_config(text: str) -> bool:
    if not _OUR_KEY.search(text) and "deepspeed_config:" not in text:
        return False
    from dsgen.documents.document import Document, DocumentError
    from dsgen.documents.yaml_text import read_yaml
    from dsgen.lint.accelerate_file import accelerate_file
    from dsgen.lint.config_file import ConfigFile
    from dsgen.lint.yaml_file import configs_in

    try:
        root = read_yaml(text)
        return any(configs_in(text, root)) or accelerate_file(ConfigFile(Document(text, root)), root) is not None
    except DocumentError:
        return False


def _python_encoding(data: bytes) -> str:
    import io
    from tokenize import detect_encoding  # late: only files that are fixed need it

    return detect_encoding(io.BytesIO(data).readline)[0]


KINDS = (
    Kind(
        "deepspeed",
        (".json", ".hjson"),
        _is_deepspeed,
        "dsgen.lint.foreign:read_file",
        further="dsgen.lint.foreign:further_configs",
    ),
    Kind(
        "deepspeed",
        (".yaml", ".yml"),
        _is_yaml_config,
        "dsgen.lint.yaml_file:read_yaml_file",
        256 << 10,
        further="dsgen.lint.yaml_file:further_configs",
    ),
    Kind(
        "python",
        (".py",),
        _is_training_code,
        "dsgen.lint.python.read:read_python",
        4 << 20,
        _python_encoding,
        further="dsgen.lint.python.dicts:configs_in_code",
    ),
)


# Files of other kinds, for which there are no rules (yet).
_OTHERS = (".toml", ".ini", ".sh")


def kind_of(name: str) -> Kind | None:
    """The kind that a file's name tells."""
    return next((kind for kind in KINDS if name.lower().endswith(kind.suffixes)), None)


def kind_of_named(name: str) -> Kind | None:
    """The kind of a file that the user names: without a telling suffix it is taken for a DeepSpeed config."""
    return kind_of(name) or (None if name.lower().endswith(_OTHERS) else KINDS[0])
