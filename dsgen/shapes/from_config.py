"""A Hugging Face config.json becomes shapes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dsgen.errors import InputError, Place
from dsgen.facts.models import models
from dsgen.facts.tables import nearest
from dsgen.shapes.checkpoint import checked
from dsgen.shapes.config_file import Config, read_config
from dsgen.shapes.hf_class import EXPERT_KEYS, KEYS, SHARED_FIELDS, HfClass, Switch
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.shapes.tensors import MOST_LAYERS, build
from dsgen.shapes.values import Architecture, Mla, Moe, Shapes

_SIZES = ("layers", "hidden", "heads", "intermediate", "vocab")
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class UnknownClassError(InputError):
    """A class without an entry in hf_classes.py, which transformers itself may know."""


def from_config(path: Path, place: Place | None = None) -> Shapes:
    """Shapes of the model that ``path`` (a config.json, or its folder) describes.

    A key that the file leaves out has the default of transformers' configuration class, as when
    transformers loads it; sizes that came about so are named in a note. Weights in the folder are held against it.
    """
    config = read_config(path, place)
    name = _class_name(config)
    hf_class = HF_CLASSES[name]
    config = replace(config, defaults=hf_class.defaults)
    folder = path if path.is_dir() else path.parent
    made = build(folder.resolve().name or name, _architecture(config, name, hf_class), _notes(config, hf_class))
    return checked(made, path, place) if path.is_dir() else made


def _class_name(config: Config) -> str:
    listed = config.get("architectures")
    if isinstance(listed, list) and listed and isinstance(listed[0], str):
        name = listed[0]
        if name in HF_CLASSES:
            return name
        raise UnknownClassError(
            *config.problem(
                "architectures", f"{name} is not supported{_yet(name)}", _like(name, list(HF_CLASSES))
            ).problems
        )
    by_type = {hf_class.model_type: name for name, hf_class in HF_CLASSES.items()}
    model_type = config.text_of("model_type")
    if model_type is None:
        raise config.problem(
            "architectures",
            "neither architectures nor model_type says what model this is",
            'write "model_type": "llama"',
        )
    if model_type not in by_type:
        problem = config.problem(
            "model_type", f"model_type {model_type} is not supported", _like(model_type, list(by_type))
        )
        raise UnknownClassError(*problem.problems)
    return by_type[model_type]


def _yet(name: str) -> str:
    return " yet" if any(model.hf_architecture == name for model in models().values()) else ""


def _like(name: str, known: list[str]) -> str:
    close = nearest(name, known)
    return f"nearest: {', '.join(close)}" if close else f"one of {', '.join(known)}"


def _key(config: Config, hf_class: HfClass, field: str) -> str:
    """The key under which the file gives ``field``: the class's own, or Llama's where the class answers to it too."""
    own, other = hf_class.keys.get(field, KEYS[field]), KEYS[field]
    if field not in SHARED_FIELDS or config.values.get(own) is not None:
        return own
    return other if config.values.get(other) is not None or config.get(own) is None else own


def _architecture(config: Config, name: str, hf_class: HfClass) -> Architecture:
    for key in hf_class.unsupported:
        if config.flag(key):
            raise config.problem(key, f"{key} is not supported yet")

    def size(field: str) -> int | None:
        return config.whole(_key(config, hf_class, field))

    def needed(field: str) -> int:
        return config.needed(_key(config, hf_class, field))

    def decided(value: Any) -> Any:
        return value.read(config) if isinstance(value, Switch) else value

    layers, hidden, heads = needed("layers"), needed("hidden"), needed("heads")
    if layers > MOST_LAYERS:
        raise config.problem(_key(config, hf_class, "layers"), f"{layers} layers are more than {MOST_LAYERS}")
    mla = _mla(config) if hf_class.mla else None
    head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim if mla else size("head_dim")
    if head_dim is None and hidden % heads and (hf_class.heads_divide_hidden or hidden < heads):
        key = _key(config, hf_class, "heads")
        raise config.problem(key, f"{heads} heads do not divide the width {hidden}", "correct one, or give head_dim")
    windowed = config.get("use_sliding_window") is not False
    fields: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads if mla else size("kv_heads") or heads,
        "head_dim": head_dim or hidden // heads,
        "intermediate": size("intermediate") or 4 * hidden,
        "vocab": needed("vocab"),
        "tied": config.flag(_key(config, hf_class, "tied")),
        "mlp": _mlp(config, hf_class),
        "norm": hf_class.norm,
        "norms_per_layer": decided(hf_class.norms_per_layer),
        "attention_bias": decided(hf_class.attention_bias),
        "mlp_bias": decided(hf_class.mlp_bias),
        "positional": decided(hf_class.positional),
        "max_positions": size("max_positions"),
        "qk_norm": decided(hf_class.qk_norm),
        "sliding_window": size("sliding_window") if windowed else None,
        "native_dtype": _dtype(config),
        "moe": _moe(config, hf_class) if hf_class.moe else None,
        "mla": mla,
        "extra": {key: decided(value) for key, value in hf_class.extra.items() if decided(value) is not None},
    }
    if hf_class.adjust is not None:
        hf_class.adjust(config, fields)
    if fields["heads"] % fields["kv_heads"]:
        key = _key(config, hf_class, "kv_heads")
        raise config.problem(key, f"{fields['kv_heads']} kv heads do not divide the {heads} heads", "choose a divisor")
    return Architecture(family=hf_class.family, hf_architecture=name, layer_class=hf_class.layer_class, **fields)


def _mlp(config: Config, hf_class: HfClass) -> str:
    key = hf_class.keys.get("activation", KEYS["activation"])
    activation = config.text_of(key) or config.text_of(KEYS["activation"]) or ""
    kinds = (
        {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu"} if hf_class.gated else {"gelu": "gelu", "relu": "relu"}
    )
    for word, mlp in kinds.items():
        if word in activation and activation not in ("relu2", "relu6"):
            return mlp
    raise config.problem(key, f"activation {activation or 'null'} is not supported yet", f"known: {', '.join(kinds)}")


def _dtype(config: Config) -> str | None:
    quantized = config.get("quantization_config")
    if isinstance(quantized, dict) and quantized.get("quant_method") == "fp8":
        return "fp8"
    written = config.get("dtype") or config.get("torch_dtype")
    return _DTYPES.get(written) if isinstance(written, str) else None


def _moe(config: Config, hf_class: HfClass) -> Moe:
    def key_of(field: str) -> str | int:
        own = hf_class.moe.get(field, 0)
        names = (own, *EXPERT_KEYS) if field == "experts" else (own,)
        return next((name for name in names if name in config.values), own)

    def read(field: str) -> int:
        key = key_of(field)
        return key if isinstance(key, int) else config.count(key)

    for field in ("experts", "top_k", "intermediate"):
        config.needed(str(key_of(field)))
    return Moe(
        experts=read("experts"),
        top_k=read("top_k"),
        intermediate=read("intermediate"),
        shared=read("shared"),
        shared_intermediate=read("shared_intermediate") or None,
        first_dense_layers=read("first_dense_layers"),
        layer_step=read("layer_step") or 1,
    )


def _mla(config: Config) -> Mla:
    return Mla(
        q_lora_rank=config.count("q_lora_rank"),
        kv_lora_rank=config.needed("kv_lora_rank"),
        qk_nope_head_dim=config.needed("qk_nope_head_dim"),
        qk_rope_head_dim=config.needed("qk_rope_head_dim"),
        v_head_dim=config.needed("v_head_dim"),
    )


def _notes(config: Config, hf_class: HfClass) -> tuple[str, ...]:
    """The sizes that the file leaves to transformers."""
    keys = [_key(config, hf_class, field) for field in _SIZES]
    absent = [f"{key} {config.get(key)}" for key in keys if key not in config.values and config.get(key) is not None]
    if not absent:
        return ()
    return (f"{config.file} leaves out {', '.join(absent)}: transformers' defaults taken",)
