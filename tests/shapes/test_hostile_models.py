"""Whatever numbers and files say, the answer is shapes or one clear error, and soon."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from dsgen.errors import InputError
from dsgen.shapes.from_config import from_config
from dsgen.shapes.from_sizes import TOLERANCE, from_sizes
from dsgen.shapes.hf_class import KEYS
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.spec.values import ModelSizes

SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "tied")

ANY = st.one_of(st.none(), st.integers(1, 64), st.integers(1, 2**63 - 1))


@settings(max_examples=300, deadline=2000)
@given(
    st.builds(
        ModelSizes,
        parameters=st.one_of(st.none(), st.integers(1, 2**63 - 1), st.integers(10**6, 10**12)),
        layers=ANY,
        hidden=ANY,
        heads=ANY,
        kv_heads=ANY,
        head_dim=ANY,
        intermediate=ANY,
        vocab=ANY,
        tied=st.one_of(st.none(), st.booleans()),
        mlp=st.one_of(st.none(), st.sampled_from(["swiglu", "geglu", "gelu", "relu"])),
    )
)
@example(ModelSizes(parameters=10**9, heads=2**61, kv_heads=2**61 - 1))
def test_wild_sizes(sizes: ModelSizes) -> None:
    hold(sizes)


def maybe(*values: int) -> st.SearchStrategy[int | None]:
    return st.one_of(st.none(), st.sampled_from(values))


@settings(max_examples=300, deadline=2000)
@given(
    st.builds(
        ModelSizes,
        parameters=st.one_of(st.none(), st.integers(10**8, 10**11)),
        layers=maybe(1, 12, 32, 80),
        hidden=maybe(512, 2048, 4096),
        heads=maybe(8, 16, 32),
        kv_heads=maybe(1, 4, 8),
        vocab=maybe(1000, 32000, 128256),
    )
)
def test_plausible_sizes(sizes: ModelSizes) -> None:
    hold(sizes)


def hold(sizes: ModelSizes) -> None:
    try:
        shapes = from_sizes(sizes)
    except InputError:
        event("refused")
        return
    for key in SIZES:
        assert getattr(sizes, key) in (None, getattr(shapes.architecture, key)), key
    assert shapes.architecture.heads % shapes.architecture.kv_heads == 0
    if sizes.parameters is not None:
        assert abs(shapes.parameters / sizes.parameters - 1) <= TOLERANCE


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-1, 3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
)
KNOWN_KEYS = sorted(
    {*KEYS.values(), "architectures", "model_type", "dtype", "quantization_config", "mlp_only_layers", "moe_layers"}
    | {"attn_config", "word_embed_proj_dim", "num_ln_in_parallel_attn"}
    | {key for hf_class in HF_CLASSES.values() for key in (*hf_class.defaults, *hf_class.keys.values())}
)


@settings(max_examples=300, deadline=2000)
@given(st.sampled_from(sorted(HF_CLASSES)), st.dictionaries(st.sampled_from(KNOWN_KEYS), JUNK, max_size=4))
def test_config(name: str, values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({"architectures": [name], **values}), encoding="utf-8")
        try:
            shapes = from_config(Path(folder))
        except InputError as error:
            assert "config.json" in str(error)  # noqa: PT017 (either outcome is right)
            event("refused")
        return
    assert shapes.parameters > 0
    assert all(size > 0 for block in set(shapes.blocks) for tensor in block.tensors for size in tensor.shape)
