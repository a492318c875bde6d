"""The weights that lie beside a config.json, held against the tensors that it describes."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dsgen.errors import InputError, Place
from dsgen.shapes.config_file import read_object
from dsgen.shapes.safetensors_header import Stored, header_of
from dsgen.shapes.values import Shapes

TOLERANCE = 0.10
"""Share by which stored and described parameters may differ before the folder is refused, as for stated sizes."""
_INDEX = "model.safetensors.index.json"
_LARGEST_INDEX = 64 * 2**20
_MOST_FILES = 10_000
_MOST_HEADERS = 256 * 2**20
_SHARD = re.compile(r"model-\d{1,6}-of-\d{1,6}\.safetensors", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]{1,200}\.safetensors", re.ASCII)
_DTYPES = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "F8_E4M3": "fp8", "F8_E5M2": "fp8"}

_NO_PARAMETER = re.compile(
    r"rotary_emb\.inv_freq$|(?:^|\.)position_ids$|attn\.(?:masked_)?bias$|attention\.(?:masked_)?bias$|_scale(?:_inv)?$|"
    r"\.(?:input|weight)_scale(?:_inv)?$|\.(?:k|v)_scale$|_zero_point$|\.num_batches_tracked$"
)
"""Buffers that older releases stored, and scales of fp8. A matrix's own ``bias`` has another name before it."""
_IN_FEW_BITS = re.compile(
    r"\.(?:qweight|qzeros|absmax|quant_map|weight_packed|nested_absmax|g_idx)(?:$|\.)|quant_state"
)
_EXTRA_LAYER = re.compile(r"(?:^|\.)mtp\.|(?:^|\.)layers\.(?P<layer>\d{1,6})\.", re.ASCII)
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings|tokens_embed)\.weight$")


def checked(shapes: Shapes, folder: Path, place: Place | None) -> Shapes:
    """The shapes with a note of what the weights in ``folder`` say; InputError where they are of another model.

    Parameters are counted as stored: without buffers and scales, without a head that a tied model stores twice, without
    layers behind the last one (those that predict further tokens). What is stored in few bits is not counted.
    """
    files = _files(folder)
    if not files:
        return shapes
    absent = [name for name in files if not (folder / name).exists()]
    if absent:
        note = f"{len(absent)} of {len(files)} weight files are not there ({absent[0]}), so they were not compared"
        return _noted(shapes, note)
    tensors = _read(folder, files)
    if any(_IN_FEW_BITS.search(tensor.name) for tensor in tensors):
        return _noted(shapes, "the weights are stored in few bits, so they were not compared with config.json")
    return _compared(shapes, tensors, folder, place)


def _files(folder: Path) -> list[str]:
    """Weight files: those that the index names, or model.safetensors, or its numbered parts."""
    index = folder / _INDEX
    if index.exists():
        _, value = read_object(index, _LARGEST_INDEX)
        names = value.get("weight_map")
        if not isinstance(names, dict) or not all(
            isinstance(name, str) and _PLAIN.fullmatch(name) for name in names.values()
        ):
            where = Place(str(index))
            raise InputError.at("weight_map does not name *.safetensors files of this folder", where)
        return sorted(set(names.values()))[:_MOST_FILES]
    if (folder / "model.safetensors").exists():
        return ["model.safetensors"]
    try:
        return sorted(path.name for path in folder.iterdir() if _SHARD.fullmatch(path.name))[:_MOST_FILES]
    except OSError:
        return []


def _read(folder: Path, files: Iterable[str]) -> list[Stored]:
    found: list[Stored] = []
    budget = _MOST_HEADERS
    for name in files:
        tensors, length = header_of(folder / name)
        budget -= length
        if budget < 0:
            raise InputError.at(
                f"the headers of the weight files are larger than {_MOST_HEADERS} bytes", Place(str(folder))
            )
        found += tensors
    return found


def _compared(shapes: Shapes, tensors: list[Stored], folder: Path, place: Place | None) -> Shapes:
    arch = shapes.architecture
    kept = [tensor for tensor in tensors if not _NO_PARAMETER.search(tensor.name)]
    kept = [tensor for tensor in kept if not _is_extra(tensor.name, arch.layers)]
    if arch.tied:
        kept = [tensor for tensor in kept if tensor.name not in ("lm_head.weight", "embed_out.weight")]
    stored, described = sum(tensor.numel for tensor in kept), shapes.parameters
    rows = next((tensor.shape[0] for tensor in kept if _EMBEDDING.search(tensor.name) and tensor.shape), arch.vocab)
    if abs(stored - described) > TOLERANCE * described:
        raise InputError.at(
            f"{folder}: the weights have {stored} parameters, config.json describes {described}",
            place,
            "the two are not of the same model: take the config.json that was published with the weights",
        )
    notes = []
    if rows != arch.vocab:
        notes.append(f"the weights' embedding has {rows} rows, config.json says vocab_size {arch.vocab}, which counts")
    elif stored != described:
        notes.append(f"the weights have {stored} parameters, config.json describes {described}, which count")
    dtype = _dtype(kept)
    if dtype is not None and arch.native_dtype not in (None, dtype):
        notes.append(f"the weights are stored in {dtype}, config.json says {arch.native_dtype}")
    if dtype is not None and arch.native_dtype is None:
        shapes = replace(shapes, architecture=replace(arch, native_dtype=dtype))
    return _noted(shapes, *notes)


def _is_extra(name: str, layers: int) -> bool:
    found = _EXTRA_LAYER.search(name)
    return found is not None and (found["layer"] is None or int(found["layer"]) >= layers)


def _dtype(tensors: list[Stored]) -> str | None:
    """The type of most elements."""
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.dtype] += tensor.numel
    return _DTYPES.get(sizes.most_common(1)[0][0]) if sizes else None


def _noted(shapes: Shapes, *notes: str) -> Shapes:
    return replace(shapes, notes=(*shapes.notes, *notes)) if notes else shapes
