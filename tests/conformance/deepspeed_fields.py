"""Own process: what a DeepSpeed release says of its config: fields of its classes, look-ups of its code, constructors.

It reads whatever release is importable: the installed one, or an unpacked one at the front of PYTHONPATH. A class that
a release does not have yet is left out.
"""

import ast
import contextlib
import enum
import inspect
import io
import json
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any

from stand_ins import stand_in

_BOUNDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}

_ZERO = "deepspeed.runtime.zero"
_SECTIONS = {
    "zero_optimization": (f"{_ZERO}.config", "DeepSpeedZeroConfig"),
    "zero_optimization.offload_param": (f"{_ZERO}.offload_config", "DeepSpeedZeroOffloadParamConfig"),
    "zero_optimization.offload_optimizer": (f"{_ZERO}.offload_config", "DeepSpeedZeroOffloadOptimizerConfig"),
    "zero_optimization.zenflow": ("deepspeed.runtime.zenflow.zenflow_config", "ZenFlowConfig"),
    "zero_optimization.leaf_module": (f"{_ZERO}.leaf_module_config", "DeepSpeedZeroLeafModuleConfig"),
    "fp16": ("deepspeed.runtime.precision_config", "DeepSpeedFP16Config"),
    "bf16": ("deepspeed.runtime.precision_config", "DeepSpeedBF16Config"),
    "comms_logger": ("deepspeed.comm.config", "CommsLoggerConfig"),
    "compile": ("deepspeed.compile.config", "CompileConfig"),
    "tensorboard": ("deepspeed.monitor.config", "TensorBoardConfig"),
    "wandb": ("deepspeed.monitor.config", "WandbConfig"),
    "csv_monitor": ("deepspeed.monitor.config", "CSVConfig"),
    "comet": ("deepspeed.monitor.config", "CometConfig"),
    "hybrid_engine": ("deepspeed.runtime.config", "HybridEngineConfig"),
    "tensor_parallel": ("deepspeed.runtime.tensor_parallel.config", "TPTrainingConfig"),
    "tensor_parallel.tensor_parallel": ("deepspeed.runtime.tensor_parallel.config", "TPConfig"),
    "weight_quantization": ("deepspeed.inference.config", "WeightQuantConfig"),
    "timers.throughput": ("deepspeed.utils.config", "DeepSpeedThroughputTimerConfig"),
}
_SCHEDULES = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
_OPTIMIZERS = {
    "adam": (("deepspeed.ops.adam", "FusedAdam"), ("deepspeed.ops.adam", "DeepSpeedCPUAdam")),
    "lamb": (("deepspeed.ops.lamb", "FusedLamb"),),
    "lion": (("deepspeed.ops.lion", "FusedLion"), ("deepspeed.ops.lion", "DeepSpeedCPULion")),
    "adagrad": (("deepspeed.ops.adagrad", "DeepSpeedCPUAdagrad"),),
}


def fields(model: Any) -> dict[str, dict[str, Any]]:
    """Every key that a pydantic class takes, aliases too, with its types, default, bounds and allowed words."""
    # DeepSpeed before 0.15 is written for pydantic 1.
    known = getattr(model, "model_fields", None) or model.__fields__
    found = {}
    for name, field in known.items():
        default = field.default
        if isinstance(default, enum.Enum):
            default = default.value
        annotation = getattr(field, "annotation", None) or field.outer_type_
        types, words = _types(annotation)
        found |= {
            key: {
                "default": default if isinstance(default, bool | int | float | str) else None,
                "bounds": _bounds(field),
                "types": types,
                "enum": words,
            }
            for key in {name, field.alias or name}
        }
    return found


def _bounds(field: Any) -> dict[str, Any]:
    marks = getattr(field, "metadata", None)
    if marks is None:
        marks = [field.field_info]
    return {
        ours: getattr(mark, theirs)
        for mark in marks
        for theirs, ours in _BOUNDS.items()
        if getattr(mark, theirs, None) is not None
    }


def _types(annotation: Any) -> tuple[list[str], list[Any]]:
    """JSON types of an annotation and the words of its enum; no types: another kind of value."""
    choices = (
        typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, UnionType) else [annotation]
    )
    types, words = set(), []
    for choice in choices:
        if typing.get_origin(choice) is typing.Literal:
            words += typing.get_args(choice)
            types |= {_TYPES[type(word)] for word in typing.get_args(choice)}
        elif inspect.isclass(choice) and issubclass(choice, enum.Enum):
            words += [member.value for member in choice]
            types |= {_TYPES[type(member.value)] for member in choice}
        else:
            bases = choice.__mro__ if inspect.isclass(choice) else ()
            kind = next((_TYPES[base] for base in bases if base in _TYPES), None)
            if kind is None:
                return [], []
            types.add(kind)
    return sorted(types), words


class Recorder(dict[str, Any]):
    """A section that notes which keys the parser asks for, each with the default that it has at hand."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        plain = default if isinstance(default, bool | int | float | str) else None
        self.asked[key] = self.asked.get(key) or {"default": plain}
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.setdefault(key, None)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.setdefault(str(key), None)
        return super().__contains__(key)

    def pop(self, key: str, *default: Any) -> Any:
        self.asked.setdefault(key, None)
        return super().pop(key, *default)

    def keys(self) -> Any:  # "key in section.keys()" is asking, too
        return _Keys(self)


class _Keys:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __contains__(self, key: object) -> bool:
        return key in self.recorder

    def __iter__(self) -> Iterator[str]:
        return iter(self.recorder)


def lookups(parse: Any, plain: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the parser looks up at the top level ("") and in each of these sections.

    Some keys are looked up only where another one stands: each section comes with contents to try, and with what stands
    around it.
    """
    asked: dict[str, dict[str, Any]] = {}
    for path, (contents, around) in plain.items():
        asked[path] = {}
        for content in contents:
            section = Recorder(dict(content))
            config: Any = section
            for name, beside in reversed(list(zip(path.split(".") if path else (), around, strict=True))):
                config = {**beside, name: config}
            # A section that has to hold more is read up to where it raises.
            with contextlib.suppress(Exception):
                parse(config)
            asked[path].update({key: said for key, said in section.asked.items() if said})
            asked[path] |= {key: said for key, said in section.asked.items() if key not in asked[path]}
    return asked


def literals(files: list[str]) -> dict[str, list[str]]:
    """Every text that stands in these files of the release, or in the constants that they import."""
    import deepspeed

    top = Path(deepspeed.__file__).parent
    return {file: sorted(_texts(top / file) | _constants(top / file, top)) for file in files if (top / file).exists()}


def _texts(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _constants(file: Path, top: Path) -> set[str]:
    """Values of the constants that a file uses by name."""
    used = {node.id for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Name)}
    found = set()
    for folder in file.parents:
        if not folder.is_relative_to(top):
            break
        for constants in [folder / "constants.py", *folder.glob("*/constants.py")]:
            for node in ast.parse(constants.read_text("utf-8")).body if constants.exists() else ():
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                    names = {target.id for target in node.targets if isinstance(target, ast.Name)}
                    found |= {str(node.value.value)} if names & used else set()
    return found


def parameters(function: Any) -> dict[str, Any]:
    """Parameters of a constructor with their defaults; "required" where there is none."""
    return {
        parameter.name: "required" if parameter.default is parameter.empty else parameter.default
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "optimizer", "params", "model_params")
    }


def _classes(*places: tuple[str, str]) -> Iterator[Any]:
    for module, name in places:
        with contextlib.suppress(ImportError, AttributeError):
            yield getattr(import_module(module), name)


def _forbids(model: Any) -> bool:
    extra = model.model_config["extra"] if hasattr(model, "model_config") else model.__config__.extra
    return str(getattr(extra, "value", extra)) == "forbid"


def main() -> None:
    out = sys.stdout
    asked = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        stand_in()
        import deepspeed
        from deepspeed.runtime import config, lr_schedules

        models = {path: model for path, place in _SECTIONS.items() for model in _classes(place)}
        found = {
            "version": deepspeed.__version__,
            "sections": {path: fields(model) for path, model in models.items()},
            "forbids": {path: _forbids(model) for path, model in models.items()},
            "lookups": lookups(config.DeepSpeedConfig, asked["plain"]),
            "literals": literals(asked["files"]),
            "schedules": {name: parameters(getattr(lr_schedules, name).__init__) for name in _SCHEDULES},
            "optimizers": {
                name: [parameters(kind.__init__) for kind in _classes(*places)] for name, places in _OPTIMIZERS.items()
            },
            "removed": sorted(getattr(config, "_REMOVED_TOP_LEVEL_CONFIG_KEYS", ())),
            "removed_zero": sorted(getattr(config, "_REMOVED_ZERO_CONFIG_KEYS", ())),
            "names": config.DEEPSPEED_OPTIMIZERS,
        }
    json.dump(found, out)


if __name__ == "__main__":
    main()
