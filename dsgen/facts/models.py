"""Models: one row of models.csv each. To add a model, add a row there."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from dsgen.facts.tables import index, nearest, rows, whole

Kind = Literal["decoder", "encoder", "encoder-decoder", "vision", "vision-language", "hybrid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One published model, by the names of Hugging Face's config.json where there is one."""

    name: str
    hf_id: str
    hf_architecture: str
    layer_class: str
    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Width of a dense layer's MLP, also in models that have no dense layer."""
    vocab: int
    tied: bool
    mlp: str
    norm: str
    norms_per_layer: int
    attention_bias: str
    mlp_bias: bool
    positional: str
    max_positions: int
    """An upper bound: base and fine-tuned checkpoints may differ."""
    qk_norm: str | None
    sliding_window: int | None
    native_dtype: str
    parameters: int
    """All parameters, with router correction values and the vision tower where there is one."""
    active_parameters: int
    """Those that one token meets, embeddings and head included."""
    vision_parameters: int
    router_buffers: int
    """Router correction values, which Hugging Face keeps as buffers."""
    decoder_layers: int | None
    """Encoder-decoder models only; ``layers`` is then the encoder."""
    columns_sufficient: bool
    """Whether the columns alone give ``parameters``; False for hybrids."""
    moe_experts: int | None
    moe_top_k: int | None
    moe_intermediate: int | None
    moe_shared: int
    moe_shared_intermediate: int | None
    moe_first_dense_layers: int
    moe_layer_step: int
    mla: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    @property
    def kind(self) -> Kind:
        """What sort of network it is."""
        if self.decoder_layers is not None:
            return "encoder-decoder"
        if "patch" in self.extra:
            return "vision"
        if self.hf_architecture.endswith("ForMaskedLM") or "rel_buckets" in self.extra:
            return "encoder"
        if not self.columns_sufficient:
            return "hybrid"
        return "vision-language" if self.vision_parameters else "decoder"


def _pairs(cell: str) -> dict[str, str]:
    """A cell of ``key=value`` pairs separated by semicolons."""
    return dict(pair.split("=", 1) for pair in cell.split(";") if pair)


def _model(row: Mapping[str, str]) -> Model:
    return Model(
        name=row["name"],
        hf_id=row["hf_id"],
        hf_architecture=row["hf_architecture"],
        layer_class=row["layer_class"],
        family=row["family"],
        layers=int(row["layers"]),
        hidden=int(row["hidden"]),
        heads=int(row["heads"]),
        kv_heads=int(row["kv_heads"]),
        head_dim=int(row["head_dim"]),
        intermediate=int(row["intermediate"]),
        vocab=int(row["vocab"]),
        tied=row["tied_embeddings"] == "yes",
        mlp=row["mlp"],
        norm=row["norm"],
        norms_per_layer=int(row["norms_per_layer"]),
        attention_bias=row["attention_bias"],
        mlp_bias=row["mlp_bias"] == "yes",
        positional=row["positional"],
        max_positions=int(row["max_positions"]),
        qk_norm=row["qk_norm"] or None,
        sliding_window=whole(row["sliding_window"]),
        native_dtype=row["native_dtype"],
        parameters=int(row["params_total"]),
        active_parameters=int(row["params_active"]),
        vision_parameters=whole(row["params_vision"]) or 0,
        router_buffers=whole(row["params_buffers"]) or 0,
        decoder_layers=whole(row["decoder_layers"]),
        columns_sufficient=row["columns_sufficient"] == "yes",
        moe_experts=whole(row["moe_experts"]),
        moe_top_k=whole(row["moe_top_k"]),
        moe_intermediate=whole(row["moe_intermediate"]),
        moe_shared=whole(row["moe_shared"]) or 0,
        moe_shared_intermediate=whole(row["moe_shared_intermediate"]),
        moe_first_dense_layers=whole(row["moe_first_dense_layers"]) or 0,
        moe_layer_step=whole(row["moe_layer_step"]) or 1,
        mla={key: int(value) for key, value in _pairs(row["mla"]).items()},
        extra=_pairs(row["extra"]),
        source=row["source"],
    )


@cache
def models() -> dict[str, Model]:
    """Every model by its own name, in the table's order."""
    return {row["name"]: _model(row) for row in rows("models")}


def _short(model: Model) -> str:
    return model.hf_id.rsplit("/", 1)[-1]


@cache
def _by_any_name() -> dict[str, Model]:
    # The Hub id without its owner is a good short form only where one model alone has it.
    uses = Counter(_short(model).lower() for model in models().values())

    def names(model: Model) -> list[str]:
        short = _short(model)
        taken = uses[short.lower()] > 1 or models().get(short.lower(), model) is not model
        return [model.name, model.hf_id] if taken else [model.name, model.hf_id, short]

    return index(models().values(), names)


def find_model(name: str) -> Model | None:
    """The model of that name, Hugging Face id, or id without its owner; upper and lower case alike."""
    return _by_any_name().get(name.lower())


def nearest_models(name: str) -> list[str]:
    """Names to suggest for one that is unknown; each model once, by its own name."""
    return list(dict.fromkeys(_by_any_name()[match].name for match in nearest(name, _by_any_name())))
