"""The file that an estimate is asked for: a DeepSpeed config in its reader's dialect, or a spec."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsgen.documents.document import Document, DocumentError, Lines
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.json_text import read_json
from dsgen.documents.source import MAX_BYTES, decode, standard_input
from dsgen.documents.yaml_text import read_yaml
from dsgen.errors import InputError, Place
from dsgen.formats.accelerate.read import Accelerate, is_accelerate
from dsgen.formats.accelerate.read import read as read_accelerate
from dsgen.formats.fsdp2.read import is_fsdp2
from dsgen.spec.source import working_folder

_OF_DEEPSPEED = frozenset(
    {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}
    | {"fp16", "bf16", "optimizer", "scheduler", "gradient_clipping", "activation_checkpointing"}
)


@dataclass(frozen=True, slots=True)
class Named:
    """A file that was read, and what it holds."""

    name: str
    folder: Path
    """What relative paths in it are relative to."""
    document: Document
    is_spec: bool
    code: Mapping[str, str] | None = None
    """FSDP2 code, by file; the document is then empty."""
    by_accelerate: Accelerate | None = None
    """What accelerate's config says of the machines; ``document`` is then the config that accelerate makes of it."""


def read_named(path: str, *, strict: bool) -> Named:
    """strict: plain JSON, as transformers and accelerate read it; else HJSON, as DeepSpeed does.

    Raises InputError with the place where it can't be read, or is neither a config nor a spec.
    """
    return _read(path, strict=strict, named_by=None)


def _read(path: str, *, strict: bool, named_by: str | None) -> Named:
    """named_by: accelerate's config that names the file, so that this is to be DeepSpeed's."""
    if (code := _code(path)) is not None:
        return Named(path, Path(path).absolute().parent, Document(""), False, code)
    data, name = _bytes(path)
    text = ""
    try:
        text = decode(data)
        if Path(path).suffix in (".yaml", ".yml") or _looks_like_yaml(text):
            root = read_yaml(text)
        else:
            root = read_json(text) if strict else read_hjson(text)
    except DocumentError as problem:
        line, column = Lines(text).place(problem.start)
        raise InputError.at(problem.message, Place(name, line, column), problem.help) from None
    value = root.value
    folder = working_folder() if path == "-" else Path(path).absolute().parent
    if isinstance(value, dict) and is_accelerate(value):
        if named_by is not None:
            message = f"names the DeepSpeed config {path}, but that is one of accelerate itself"
            raise InputError.at(message, Place(named_by), "name the file with zero_optimization in it")
        return _of_accelerate(name, folder, value)
    is_spec = isinstance(value, dict) and "model" in value and "hardware" in value
    if not is_spec and not (isinstance(value, dict) and (not value or _OF_DEEPSPEED & value.keys())):
        help = "name a DeepSpeed config (ds_config.json), accelerate's config, FSDP2 code, or a spec.yaml"
        raise InputError.at("is neither a DeepSpeed config nor a spec", Place(name), help)
    return Named(name, folder, Document(text, root), is_spec)


def _code(path: str) -> Mapping[str, str] | None:
    """FSDP2 code: a file that shards, or a folder with one and what lies beside it; None where it is something else."""
    place = Path(path)
    files = sorted(place.glob("*.py")) if place.is_dir() else [place] if place.suffix == ".py" else []
    texts: dict[str, str] = {}
    for file in files:
        try:
            texts[str(file)] = decode(_bytes(str(file))[0])
        except DocumentError as problem:
            raise InputError.at(problem.message, Place(str(file)), problem.help) from None
    if not any(is_fsdp2(text) for text in texts.values()):
        return None
    # What shards comes first: of two files that fix the same thing it is believed.
    return dict(sorted(texts.items(), key=lambda item: not is_fsdp2(item[1])))


def _of_accelerate(name: str, folder: Path, value: Mapping[str, Any]) -> Named:
    """The DeepSpeed config that accelerate hands on: the file that it names, or its own few keys."""
    found = read_accelerate(value)
    if found.framework is None:
        raise InputError.at(f"distributed_type {value.get('distributed_type')!r} has no account here", Place(name))
    if found.framework != "deepspeed":
        return Named(name, folder, Document(""), False, by_accelerate=found)
    if found.config_file is None:
        text = json.dumps(found.config)
        return Named(name, folder, Document(text, read_json(text)), False, by_accelerate=found)
    for path in (Path(found.config_file), folder / found.config_file):
        if path.is_file():
            return replace(_read(str(path), strict=True, named_by=name), by_accelerate=found)
    raise InputError.at(f"names the DeepSpeed config {found.config_file}, which is not there", Place(name))


def _bytes(path: str) -> tuple[bytes, str]:
    try:
        if path == "-":
            return standard_input(MAX_BYTES + 1), "<stdin>"
        with open(path, "rb") as stream:
            return stream.read(MAX_BYTES + 1), path
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError.at(f"cannot be read: {reason}", Place(path)) from None


def _looks_like_yaml(text: str) -> bool:
    """HJSON without its outer braces looks like YAML; DeepSpeed's configs have braces, a spec has none."""
    start = text.lstrip("\ufeff \t\r\n")
    lines = (line for line in start.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return not next(lines, "{").lstrip().startswith("{")
