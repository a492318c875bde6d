"""``--sweep``: the same spec with other values of one or several of its keys, each decided anew."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product

from dsgen.errors import InputError, ProblemsError
from dsgen.facts.tables import nearest
from dsgen.hardware import hardware_of
from dsgen.plan import Wishes
from dsgen.planner.job import Job, decide_spec
from dsgen.planner.refusal import NothingFitsError
from dsgen.planner.values import Candidate
from dsgen.spec.read import spec_of
from dsgen.spec.source import Source
from dsgen.spec.values import Spec
from dsgen.spec.words import listed

# More plans than this are a mistake rather than a question.
MOST_ROWS = 1000

# GPUs of a node, where a sweep over ``gpus`` has to know and the spec does not say.
USUAL_NODE = 8

_HARDWARE = ("node", "gpu", "gpus_per_node", "nodes", "host_memory")
_TRAINING = ("sequence_length", "global_batch", "global_tokens", "precision", "attention")
_AXES: Mapping[str, tuple[str, ...]] = {
    "model": ("model",),
    "memory_budget": ("memory_budget",),
    "method": ("training", "method", "type"),
    "loaded_by": ("target", "loaded_by"),
    "format": ("target", "format"),
    **{name: ("hardware", name) for name in _HARDWARE},
    **{field.name: ("want", field.name) for field in fields(Wishes) if field.name not in ("buckets", "swap", "zeropp")},
    **{name: ("training", name) for name in _TRAINING},
}
"""Where each key stands in a spec. ``gpus`` is none of these: it is nodes times GPUs of a node."""
AXES = ("gpus", *_AXES)


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and its values, as they were written."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: a plan, or why there is none."""

    values: Mapping[str, str]
    job: Job | None = None
    refusal: str | None = None
    closest: Candidate | None = None
    """What misses by least, where nothing fits."""


def axis_of(text: str) -> Axis:
    """``gpus=8,16,32``."""
    key, sign, rest = text.partition("=")
    values = tuple(value.strip() for value in rest.split(",")) if rest.strip() else ()
    if not sign or not all(values) or not values:
        raise InputError.at(f"--sweep {text}: no KEY=VALUE,VALUE", help="for example --sweep gpus=8,16,32")
    if key not in AXES:
        close = nearest(key, AXES)
        raise InputError.at(
            f"--sweep {text}: {key!r} can't be swept",
            help=f"did you mean {listed(close)}?" if close else f"keys are {', '.join(AXES)}",
        )
    return Axis(key, tuple(dict.fromkeys(values)))


def sweep(source: Source, axes: Sequence[Axis]) -> Iterator[Row]:
    """Every combination of the axes' values, in the order in which they were written.

    Raises InputError for a value that the schema refuses, before anything is decided.
    """
    keys = [axis.key for axis in axes]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InputError.at(f"--sweep {twice} stands twice", help="write all its values into one")
    combinations = [dict(zip(keys, values, strict=True)) for values in product(*(axis.values for axis in axes))]
    if len(combinations) > MOST_ROWS:
        raise InputError.at(f"--sweep asks for {len(combinations)} plans; the most is {MOST_ROWS}")
    specs = [(values, _changed(source, values)) for values in combinations]
    for values, changed in specs:
        yield _row(values, changed)


def _row(values: Mapping[str, str], spec: Spec | str) -> Row:
    if isinstance(spec, str):
        return Row(values, refusal=spec)
    try:
        return Row(values, decide_spec(spec))
    except NothingFitsError as refused:
        return Row(values, refusal=refused.problems[0].message, closest=refused.closest)
    except ProblemsError as refused:
        return Row(values, refusal=refused.problems[0].message)


def _changed(source: Source, values: Mapping[str, str]) -> Spec | str:
    """The spec with these values; a sentence where the GPUs fill no whole nodes."""
    changes = {_AXES[key]: text for key, text in values.items() if key in _AXES}
    if "node" in values:
        # A preset says what the GPU is and how many there are.
        changes |= {("hardware", key): "" for key in ("gpu", "gpus_per_node") if key not in values}
    if "gpu" in values and "node" not in values:
        stated = spec_of(source).hardware
        if stated.node is not None and stated.gpus_per_node is None and "gpus_per_node" not in values:
            changes[("hardware", "gpus_per_node")] = str(hardware_of(spec_of(source)).gpus_per_node)
        changes[("hardware", "node")] = ""
    spec = spec_of(source, changes)
    if "gpus" not in values:
        return spec
    count = _whole(values["gpus"])
    says_node = spec.hardware.gpus_per_node is not None or spec.hardware.node is not None
    per_node = hardware_of(spec).gpus_per_node if says_node else USUAL_NODE
    if count > per_node and count % per_node:
        return f"{count} GPUs are no whole number of nodes of {per_node}"
    counts = {
        ("hardware", "gpus_per_node"): str(min(count, per_node)),
        ("hardware", "nodes"): str(max(1, count // per_node)),
    }
    return spec_of(source, changes | counts)


def _whole(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**6:
        raise InputError.at(f"--sweep gpus={text}: no number of GPUs", help="for example --sweep gpus=8,16,32")
    return int(text)
