"""What was named on the command line becomes cases: a config, a spec, or a folder that build has written."""

from dataclasses import replace
from pathlib import Path

from dsgen.errors import InputError, Place
from dsgen.smoke.decoders import DEFAULT_FAMILY, default_decoder
from dsgen.smoke.read_config import read_config, read_text
from dsgen.smoke.values import Case, Filling

_SPEC_SUFFIXES = (".yaml", ".yml")
_CONFIG_IN_FOLDER = "ds_config.json"
_MODEL_IN_FOLDER = "model.py"
_FSDP2_FILES = ("train.py", "sharding.py")


def read_case(name: str) -> Case:
    """The case behind one name; a malformed file or spec is an InputError, an impossible one a RefusedError."""
    path = Path(name)
    if path.is_dir():
        return _from_folder(path, name)
    if path.suffix.lower() in _SPEC_SUFFIXES:
        from dsgen.smoke.from_spec import from_spec

        return from_spec(path)
    return _from_config(path)


def _from_config(path: Path) -> Case:
    config, strict = read_config(path)
    uses_auto = _has_auto(config)
    notes = []
    if uses_auto:
        notes.append('"auto" is filled as the Trainer would; DeepSpeed alone would ignore it or fail')
    if not strict:
        notes.append("HJSON, not strict JSON: DeepSpeed reads it, transformers and accelerate do not")
    return Case(
        name=str(path),
        config=config,
        decoder=default_decoder(),
        family=DEFAULT_FAMILY,
        filling=Filling() if uses_auto else None,
        notes=tuple(notes),
    )


def _from_folder(folder: Path, name: str) -> Case:
    """A folder as build writes it: a DeepSpeed config or FSDP2 code, and what trains with it."""
    if (folder / _CONFIG_IN_FOLDER).is_file():
        return replace(_beside_its_model(folder / _CONFIG_IN_FOLDER), folder=folder)
    if not all((folder / file).is_file() for file in _FSDP2_FILES):
        raise InputError.at(
            f"there is no {_CONFIG_IN_FOLDER} in this folder, and no {' with '.join(_FSDP2_FILES)}",
            Place(name),
            "give a folder that dsgen build -o DIR has written, or a config file",
        )
    for file in _FSDP2_FILES:
        read_text(folder / file, str(folder / file))
    return Case(name=name, config={}, decoder="", family=_MODEL_IN_FOLDER, format="fsdp2", folder=folder)


def _beside_its_model(path: Path) -> Case:
    """A config, with the decoder that build has written beside it."""
    case = _from_config(path)
    beside = path.with_name(_MODEL_IN_FOLDER)
    if not beside.is_file():
        return case
    source = read_text(beside, str(beside))
    if all(name in source for name in ("class Decoder(", "class Config", "def tiny(")):
        return replace(case, decoder=source, family=_MODEL_IN_FOLDER)
    note = f"run with a {DEFAULT_FAMILY} decoder: {beside} has no Decoder with a Config.tiny(), as build writes it"
    return replace(case, notes=(*case.notes, note))


def _has_auto(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_auto(inner) for inner in value.values())
    return value == "auto"
