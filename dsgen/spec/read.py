"""spec.yaml to frozen values: read, parsed, typed by the schema, validated, and checked where keys meet."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dsgen.spec.check import faults_of
from dsgen.spec.document import parse, set_text
from dsgen.spec.faults import Fault, input_error
from dsgen.spec.residents import residents_of, unknown_residents
from dsgen.spec.schema import spec_schema
from dsgen.spec.schema_walk import Typed, typed
from dsgen.spec.source import Source, decode, read_source, working_folder
from dsgen.spec.values import (
    Code,
    GpuNumbers,
    HardwareSpec,
    Interconnect,
    KeyPath,
    Method,
    ModelSizes,
    ModelSpec,
    NvmeSpec,
    Optimizer,
    Resident,
    Scheduler,
    Spec,
    TargetSpec,
    Training,
)
from dsgen.units import format_count


def read_spec(path: str) -> Spec:
    """The spec at ``path`` (``-``: standard input); InputError with every problem and its place."""
    return _spec(read_source(path))


def spec_from_text(text: str, file: str = "<text>", folder: Path | None = None) -> Spec:
    """A spec from its text; relative paths are relative to ``folder``, else to the working directory."""
    return _spec(Source(decode(text.encode("utf-8", "surrogatepass"), file), file, folder or working_folder()))


def spec_from_mapping(mapping: Mapping[str, Any], folder: Path | None = None) -> Spec:
    """A spec from plain values (JSON is YAML)."""
    return spec_from_text(json.dumps(mapping, ensure_ascii=False, indent=1), "<mapping>", folder)


def spec_of(source: Source, changed: Mapping[tuple[str, ...], str] = MappingProxyType({})) -> Spec:
    """The spec of a text that was read already; ``changed``: what other text stands at a path, for ``--sweep``."""
    return _spec(source, changed)


def _spec(source: Source, changed: Mapping[tuple[str, ...], str] = MappingProxyType({})) -> Spec:
    tree = parse(source)
    for path, text in changed.items():
        set_text(tree, path, text)
    document = typed(tree, spec_schema())
    faults = faults_of(document) or _meetings(document)
    if faults:
        raise input_error(faults)
    value = document.value
    return Spec(
        file=source.file,
        model=_model(value["model"], source.folder),
        hardware=_hardware(value["hardware"]),
        memory_budget=value.get("memory_budget"),
        training=_training(value.get("training", {}), residents_of(value.get("residents", ()))),
        want=value.get("want", {}),
        target=TargetSpec(**value.get("target", {})),
        places=document.places,
    )


def _model(value: Any, folder: Path) -> ModelSpec:
    if not isinstance(value, str):
        sizes = {key: size for key, size in value.items() if key != "factory"}
        return ModelSpec(sizes=ModelSizes(**sizes), factory=value.get("factory"))
    path = folder / _home(value)
    looks_like_path = value.startswith(("./", "../", "/", "~/")) or value in {".", ".."} or value.endswith(".json")
    # A name stays a name unless a model really lies there, as transformers decides too.
    return ModelSpec(path=path) if looks_like_path or _holds_model(path) else ModelSpec(name=value)


def _home(value: str) -> Path:
    """``~/`` is the user's home, where there is one."""
    try:
        return Path(value).expanduser() if value.startswith("~/") else Path(value)
    except RuntimeError:  # neither $HOME nor an entry of this user
        return Path(value)


def _holds_model(folder: Path) -> bool:
    try:
        return (folder / "config.json").is_file()
    except OSError:  # a name too long for a file, or a folder that is closed to us
        return False


def _hardware(value: Mapping[str, Any]) -> HardwareSpec:
    given = dict(value)
    if isinstance(given.get("gpu"), dict):
        given["gpu"] = GpuNumbers(**given["gpu"])
    if "interconnect" in given:
        given["interconnect"] = Interconnect(**given["interconnect"])
    if "nvme" in given:
        given["nvme"] = NvmeSpec(**given["nvme"])
    return HardwareSpec(**given)


def _training(value: Mapping[str, Any], residents: tuple[Resident, ...]) -> Training:
    given = dict(value) | {"residents": residents, "freeze": tuple(value.get("freeze", ()))}
    if given.get("sequence_length") == "max":
        del given["sequence_length"]
        given["longest"] = True
    if "optimizer" in given:
        optimizer = dict(given["optimizer"])
        if "betas" in optimizer:
            optimizer["betas"] = tuple(optimizer["betas"])
        given["optimizer"] = Optimizer(**optimizer)
    if "scheduler" in given:
        given["scheduler"] = Scheduler(**given["scheduler"])
    if "method" in given:
        method = dict(given["method"])
        if isinstance(method.get("targets"), list):
            method["targets"] = tuple(method["targets"])
        if method.get("type") == "qlora":
            method |= {"type": "lora", "quantization": method.get("quantization", "nf4")}
        given["method"] = Method(**method)
    if given.get("compile"):
        # What it makes of a norm keeps what a fused kernel keeps; so it is counted of measured runs, too.
        given["code"] = Code(fused=frozenset({"norm"}))
    return Training(**given)


def _meetings(document: Typed) -> list[Fault]:
    """What no single key shows: values that must agree with each other."""
    training = document.value.get("training", {})
    faults: list[Fault] = list(unknown_residents(document))
    path: KeyPath
    tokens, length = training.get("global_tokens"), training.get("sequence_length")
    if tokens is not None and isinstance(length, int) and tokens % length:
        path = ("training", "global_tokens")
        below, above = tokens // length * length, (tokens // length + 1) * length
        message = (
            f"training.global_tokens: {tokens} ({format_count(tokens)}) is not a multiple of sequence_length {length}"
        )
        help = f"the nearest are {below} and {above}" if below else f"the smallest is {above}"
        faults.append(Fault(path, document.places[path], message, help))
    scheduler = training.get("scheduler", {})
    warmup, total = scheduler.get("warmup_steps"), scheduler.get("total_steps")
    if warmup is not None and total is not None and warmup > total:
        path = ("training", "scheduler", "warmup_steps")
        message = f"training.scheduler.warmup_steps: {warmup} is more than total_steps {total}"
        faults.append(Fault(path, document.places[path], message))
    return faults
