"""The optimizer section: DeepSpeed's names and constructors in a spec's words."""

from collections.abc import Iterator, Mapping
from typing import Any

from dsgen.formats.deepspeed.read import values as to
from dsgen.formats.deepspeed.read.walk import Entry, default_parameter
from dsgen.reading import LeftOut, Said

_TYPE = "optimizer.type"
_PARAMETERS: Mapping[str, to.Reader] = {
    "lr": to.not_negative,
    "betas": to.betas,
    "eps": to.not_negative,
    "weight_decay": to.not_negative,
    "momentum": to.not_negative,
}
_OF = {"adam": ("lr", "betas", "eps", "weight_decay"), "adamw": ("lr", "betas", "eps", "weight_decay")}
_OF_SGD = ("lr", "weight_decay", "momentum")
_IMPLEMENTATIONS = frozenset(
    {"torch_adam", "bias_correction", "amsgrad", "fused", "foreach", "set_grad_none", "capturable", "maximize"}
)
"""How Adam is computed."""


def read_optimizer(found: Mapping[str, Entry]) -> Iterator[Said | LeftOut | Entry]:
    """What is not written is the constructor's default (deepspeed/ops/adam/fused_adam.py); an "auto" stays open."""
    entry = found.get(_TYPE)
    params = found.get("optimizer.params")
    given = params.value if params is not None and isinstance(params.value, Mapping) else {}
    at = params.at if params is not None else ("optimizer",)
    if entry is None or not isinstance(entry.value, str):
        for key, value in given.items():
            yield LeftOut(f"optimizer.params.{key}", value, "there is no optimizer.type beside it")
        return
    kind = entry.value.lower()
    name = _name(kind, given)
    yield Said(("training", "optimizer", "type"), name, entry.at)
    named = _OF.get(kind, _OF_SGD if kind == "sgd" else ("lr", "weight_decay"))
    for key in named:
        if key not in given:
            yield from _default(kind, key)
    for key, value in given.items():
        yield from _parameter(key, value, named, (*at, key))


def open_parameters(found: Mapping[str, Entry]) -> tuple[str, ...]:
    """Parameters that are "auto"."""
    params = found.get("optimizer.params")
    given = params.value if params is not None and isinstance(params.value, Mapping) else {}
    return tuple(f"optimizer.params.{key}" for key, value in given.items() if value == "auto")


def _name(kind: str, given: Mapping[str, Any]) -> str:
    """DeepSpeed's Adam is AdamW unless told otherwise (deepspeed/runtime/engine.py:_configure_basic_optimizer)."""
    return "adamw" if kind == "adam" and given.get("adam_w_mode", True) is not False else kind


def _default(kind: str, key: str) -> Iterator[Said]:
    value = default_parameter(kind, key)
    if value is not None:
        why = f"not in the file: the default of DeepSpeed's {kind}"
        yield Said(("training", "optimizer", key), value, None, why)


def _parameter(
    key: str, value: Any, named: tuple[str, ...], at: tuple[str | int, ...]
) -> Iterator[Said | LeftOut | Entry]:
    if value == "auto" or key in ("adam_w_mode", "adamw_mode"):
        return
    dotted = ".".join(map(str, at))
    if key not in named:
        if key in _IMPLEMENTATIONS:
            yield Entry(dotted, value, at, {})
        else:
            yield LeftOut(dotted, value, "a spec has no such parameter of an optimizer")
        return
    try:
        yield Said(("training", "optimizer", key), _PARAMETERS[key](value), at)
    except ValueError as error:
        yield LeftOut(dotted, value, str(error))
