"""What flags, settings or a spec say of the model, the machines and the training, looked up.

Loaded only where somebody says so: most lints need no table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsgen.errors import InputError
from dsgen.units import format_bytes, format_count, parse_bytes, parse_count

if TYPE_CHECKING:
    from dsgen.facts.gpus import Gpu
    from dsgen.plan import Checkpointing
    from dsgen.shapes.values import Shapes
    from dsgen.spec.values import Method, Spec

METHODS = ("full", "lora", "qlora")
_CHECKPOINTING = ("none", "full", "selective")


class Unknown(ValueError):  # noqa: N818 - it is what was said, not what went wrong with us
    """A name or figure that nobody knows; its text says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedModel:
    """A model as far as it was told."""

    name: str
    parameters: int
    trained_in: str | None = None
    """Type of pre-training: bf16, fp16, fp32, fp8; None: not known."""
    shapes: "Shapes | None" = field(default=None, compare=False)
    """Its tensors; None where only the number of parameters is known."""

    @property
    def shown(self) -> str:
        """For messages."""
        size = format_count(self.parameters)
        return f"{size} parameters" if self.name == size else f"{self.name} ({size} parameters)"

    def trained(self, method: "Method | None") -> int:
        """Parameters that get gradients; all that a spec does not freeze where nobody named another method. Of adapters
        beside matrices of which nobody told the sizes, none: how many there are is not guessed."""
        if self.shapes is None:
            return self.parameters if method is None or method.type == "full" else 0
        if method is None or method.type == "full":
            return self.shapes.trainable
        from dsgen.shapes.lora import with_method

        return with_method(self.shapes, method).trainable

    def stored(self, method: "Method | None", width: float) -> float:
        """Bytes of the weights, ``width`` for each, but for matrices of blocks that the method holds in few bits; where
        only the number of parameters is known, all of them."""
        if method is None or method.quantization is None:
            return width * self.parameters
        from dsgen.facts.quantizations import quantizations

        few = quantizations()[method.quantization].width
        if self.shapes is None:
            return few * self.parameters
        blocks = self.shapes.blocks
        matrices = sum(tensor.numel for block in blocks for tensor in block.tensors if len(tensor.shape) == 2)
        return few * matrices + width * (self.parameters - matrices)


def gpu(text: str) -> "Gpu":
    """A GPU by its name, or by its memory alone (24GiB).

    Raises:
        Unknown: no such name.
    """
    from dsgen.facts.gpus import Gpu, find_gpu, nearest_gpus

    found = find_gpu(text)
    if found is not None:
        return found
    size = _size(text)
    if not size:
        raise Unknown(_no_such("GPU", "gpus", text, nearest_gpus(text), "or give its memory: 24GiB"))
    unknown: dict[str, Any] = dict.fromkeys(("bf16_tflops", "fp16_tflops", "fp32_tflops", "memory_gb_s", "link_gb_s"))
    return Gpu(name=f"a GPU of {format_bytes(size)}", memory=size, **unknown)


def _size(text: str) -> int | None:
    try:
        return parse_bytes(text) if text[:1].isdigit() and text[-1:] in "Bb" else None
    except ValueError:
        return None


def _no_such(kind: str, table: str, text: str, near: list[str], instead: str) -> str:
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"no {kind} is called {text!r}: {meant}dsgen show {table} lists them all; {instead}"


def model(text: str, folder: Path | None = None) -> StatedModel:
    """A model by its name or Hugging Face id, by a folder with config.json, or by its size alone (7B).

    Raises:
        Unknown: no such name, or a config.json that cannot be used.
    """
    path = (folder or Path()) / text
    if text.endswith(".json") or _is_file(path / "config.json"):
        from dsgen.shapes.from_config import from_config

        try:
            shapes = from_config(path)
        except InputError as error:
            raise Unknown("; ".join(problem.message for problem in error.problems)) from None
        return _of_shapes(shapes)
    from dsgen.facts.models import find_model, nearest_models

    row = find_model(text)
    if row is not None:
        from dsgen.shapes.from_row import from_row

        shapes_known = from_row(row) if row.kind == "decoder" else None
        return StatedModel(
            name=row.name, parameters=row.parameters, trained_in=row.native_dtype or None, shapes=shapes_known
        )
    try:
        count = parse_count(text)
    except ValueError:
        instead = "or give a folder with config.json, or a size: 7B"
        raise Unknown(_no_such("model", "models", text, nearest_models(text), instead)) from None
    if count < 1:
        raise Unknown(f"a model of {text!r} parameters: write 7B")
    return StatedModel(name=format_count(count), parameters=count)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _of_shapes(shapes: "Shapes") -> StatedModel:
    return StatedModel(
        name=shapes.name, parameters=shapes.parameters, trained_in=shapes.architecture.native_dtype, shapes=shapes
    )


def host_memory(text: str) -> int:
    """Bytes of RAM of one node.

    Raises:
        Unknown: no size.
    """
    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise Unknown(f"{text!r} is {error}: write 512GiB") from None
    if size < 1:
        raise Unknown(f"{text!r} is no memory: write 512GiB")
    return size


def checkpointing(text: str) -> "Checkpointing":
    """Activation checkpointing: none, full, selective, or every:2 (one block in two).

    Raises:
        Unknown: anything else.
    """
    from dsgen.plan import Checkpointing

    kind, _, number = text.partition(":")
    if kind in _CHECKPOINTING and not number:
        return Checkpointing(kind)  # type: ignore[arg-type]
    if kind == "every" and number.isdecimal() and int(number) > 0:
        return Checkpointing("every", int(number))
    raise Unknown(f"checkpointing is none, full, selective or every:2, not {text!r}")


def method(text: str) -> "Method":
    """What is trained.

    Raises:
        Unknown: another method.
    """
    from dsgen.spec.values import Method

    if text not in METHODS:
        raise Unknown(f"a method is full, lora or qlora, not {text!r}")
    if text == "qlora":
        return Method(type="lora", quantization="nf4")
    return Method(type=text)  # type: ignore[arg-type]


@cache
def of_spec(path: str) -> Mapping[str, Any]:
    """What a spec says of the target, under the names that flags have; what it leaves open is not in it.

    Raises:
        InputError, RefusedError: the spec cannot be read, or names what is not known.
    """
    from dsgen.hardware import hardware_of
    from dsgen.spec.read import read_spec

    spec = read_spec(path)
    hardware = hardware_of(spec)
    # A spec may leave the number of GPUs open; what the planner then assumes is no fact.
    counted = spec.hardware.node is not None or spec.hardware.gpus_per_node is not None
    said: dict[str, Any] = {
        "gpu": hardware.gpu,
        "gpus_per_node": hardware.gpus_per_node if counted else None,
        "world_size": hardware.world_size if counted else None,
        "host_memory": hardware.host_memory,
        "model": _model_of(spec),
        "sequence_length": spec.training.sequence_length,
        "method": spec.training.method,
        "deepspeed": spec.target.versions.get("deepspeed"),
    }
    if ("target", "loaded_by") in spec.places:
        said["loaded_by"] = spec.target.loaded_by
    if type(spec.want.get("micro_batch")) is int:
        said["micro_batch"] = spec.want["micro_batch"]
    wanted = spec.want.get("checkpointing")
    if isinstance(wanted, str):
        said["checkpointing"] = checkpointing(wanted)
    elif isinstance(wanted, dict) and type(wanted.get("every")) is int:
        said["checkpointing"] = checkpointing(f"every:{wanted['every']}")
    return {key: value for key, value in said.items() if value is not None}


def _model_of(spec: "Spec") -> StatedModel:
    """The spec's model; sizes without layers or width say how many parameters there are, and no more."""
    stated = spec.model
    frozen = bool(spec.training.freeze)  # which parameters that is needs the tensors
    if stated.name is not None and not frozen:
        try:
            return model(stated.name)
        except Unknown as unknown:
            raise InputError.at(str(unknown), spec.place("model")) from None
    if stated.sizes is not None and stated.sizes.parameters and stated.sizes.hidden is None and not frozen:
        count = stated.sizes.parameters
        return StatedModel(name=format_count(count), parameters=count)
    from dataclasses import replace

    from dsgen.shapes.resolve import shapes_of
    from dsgen.spec.values import Method

    whole = replace(spec, training=replace(spec.training, method=Method()))
    return _of_shapes(shapes_of(whole))
