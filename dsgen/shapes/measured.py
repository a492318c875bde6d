"""A model that only code knows (a factory, a class of transformers without an entry here) becomes shapes: it is made on
the meta device, in a process of its own, and what it consists of is read off."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dsgen.errors import DsgenError, InputError, MissingToolError, Place, RefusedError
from dsgen.processes.ask import ask
from dsgen.shapes.from_sizes import TOLERANCE, from_sizes
from dsgen.shapes.values import Block, Shapes, Tensor
from dsgen.spec.values import ModelSizes

TIMEOUT = 120.0
"""Seconds; importing transformers takes most of them."""
_OFFLINE = {
    **{"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
    **{"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"},
}
_MOST = 300
"""Characters of what a library says."""


def of_factory(factory: str, folder: Path, place: Place | None) -> Shapes:
    """What ``factory``, a function that is importable or lies under ``folder``, makes."""
    measured = _ask(factory, None, (str(folder.resolve()), str(Path.cwd())), place)
    shapes = _shapes(factory, measured, place)
    return replace(shapes, name=factory, factory=factory)


def of_config(folder: Path, place: Place | None) -> Shapes:
    """The class that a config.json names, as transformers makes it; no code beside the file is run."""
    folder = folder if folder.is_dir() else folder.parent
    measured = _ask(None, str(folder.resolve()), (), place)
    shapes = _shapes(str(folder), measured, place)
    kind = measured["class"]
    # A family of its own: nothing that dsgen writes for Llama is meant for it.
    arch = replace(
        shapes.architecture,
        family=measured["model_type"] or kind,
        hf_architecture=kind,
        layer_class=measured["block_class"],
    )
    note = f"{kind} was counted by transformers; what its blocks keep is counted as of Llama's"
    return replace(shapes, name=folder.resolve().name or kind, architecture=arch, notes=(*shapes.notes, note))


@cache
def _ask(factory: str | None, config: str | None, paths: tuple[str, ...], place: Place | None) -> Mapping[str, Any]:
    """Once for each model and command: a search over changed specs asks for the same one again and again."""
    with tempfile.TemporaryDirectory(prefix="dsgen-model-") as name:
        request = {"factory": factory, "config": config, "paths": list(paths)}
        try:
            last = ask("meta_model", request, Path(name), TIMEOUT, _OFFLINE)[-1]
        except DsgenError as error:  # its folder goes with it
            raise DsgenError.at(error.problems[0].message, place) from None
    what = factory or config
    if last["event"] == "missing":
        message = f"{last['library']} is not installed, and {what} can't be counted without it"
        raise MissingToolError.at(message, place, "pip install 'dsgen[smoke,hf]'")
    if last["event"] == "error":
        message = " ".join(str(last["message"]).split())[:_MOST]
        where = str(last.get("source") or "").partition(": ")[0]
        help = f"raised in {where}" if where else None
        raise RefusedError.at(f"{what}: {last['phase']}: {last['type']}: {message}", place, help)
    if last["event"] != "model":
        raise DsgenError.at(f"{what}: the process ended in: {last.get('phase')}", place)
    return last


def _shapes(what: str, measured: Mapping[str, Any], place: Place | None) -> Shapes:
    """A decoder of the measured sizes, and in each block and outside what it has beyond that.

    Sizes are those of the model's own config, else of its token embedding, its list of blocks and their linear layers.
    InputError where a decoder of these sizes would be more than a tenth off: then the formulas are not for this model.
    """
    sizes = _sizes(measured)
    if sizes.layers is None or sizes.hidden is None or sizes.layers != len(measured["blocks"]):
        raise InputError.at(
            f"{what} has {measured['parameters']} parameters, but no list of equal blocks with an embedding before it",
            place,
            "give its numbers beside the factory: layers, hidden, heads, vocab",
        )
    made = from_sizes(sizes, _at(place))
    total = int(measured["parameters"])
    if abs(made.parameters - total) > TOLERANCE * total:
        raise InputError.at(
            f"{what} has {total} parameters; a decoder of its sizes would have {made.parameters}: it is built "
            "otherwise, and its activations have no formula",
            place,
            "give numbers that describe it beside the factory, or a preset (dsgen show models)",
        )
    outside = total - sum(measured["blocks"])
    kinds: dict[int, Block] = {}
    blocks = tuple(kinds.setdefault(size, _filled(made.blocks[0], size)) for size in measured["blocks"])
    rest = outside - made.outer.parameters
    extra = (Tensor("other", (rest,)),) if rest > 0 else ()
    shapes = replace(made, blocks=blocks, outside=(*made.outside, *extra), stated_parameters=None)
    note = f"{what}: {total} parameters counted on the meta device"
    if shapes.parameters != total:
        note += f"; the ledger has {shapes.parameters}, those of a decoder with its sizes"
    frozen = total - int(measured["trainable"])
    if frozen:
        note += f"; {frozen} of them need no gradient as they are made, and are counted as trained"
    return replace(shapes, notes=(*made.notes, note))


def _filled(block: Block, size: int) -> Block:
    """The block with one tensor more for what the real one has beyond it."""
    more = size - block.parameters
    return replace(block, tensors=(*block.tensors, Tensor("other", (more,)))) if more > 0 else block


def _at(place: Place | None) -> Callable[[str], Place | None]:
    return lambda _key: place


def _sizes(measured: Mapping[str, Any]) -> ModelSizes:
    known = dict(measured["sizes"])
    vocab, width = measured["embedding"] or (None, None)
    hidden = known.get("hidden") or width
    linears = [(out, inner) for _, out, inner in measured["linears"]]
    widths = {out for out, inner in linears if inner == hidden} & {inner for out, inner in linears if out == hidden}
    intermediate = known.get("intermediate") or max(widths - {hidden}, default=None)
    gates = sum(1 for out, inner in linears if inner == hidden and out == intermediate)
    fused = intermediate is not None and (2 * intermediate, hidden) in linears
    return ModelSizes(
        layers=known.get("layers") or len(measured["blocks"]) or None,
        hidden=hidden,
        heads=known.get("heads"),
        kv_heads=known.get("kv_heads"),
        head_dim=known.get("head_dim"),
        intermediate=intermediate,
        vocab=vocab or known.get("vocab"),
        tied=bool(measured["tied"]),
        max_positions=known.get("max_positions"),
        mlp="swiglu" if gates > 1 or fused else "gelu",
    )
