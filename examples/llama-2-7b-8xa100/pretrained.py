"""Published weights: a Hugging Face folder on disk, config.json beside *.safetensors.

Its tensors are named as the decoder's parameters, after a leading "model.". Nothing is
fetched, and nothing is passed over in silence.
"""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from model import Config, Decoder, RopeScaling
from torch import Tensor

SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
)
ACTIVATION = "silu"

Place = tuple[Path, str]  # a file and the name of a tensor in it


def published(folder: Path, planned: Config) -> tuple[Config, dict[str, Place]]:
    """The planned sizes with the folder's numbers; where each parameter's values lie.

    Every rank asks, before the model is made: where something is wrong, all stop.
    So the folder has to be on every node.
    """
    config = with_numbers(folder / "config.json", planned)
    return config, located(folder, config)


def read(place: Place) -> Tensor:
    file, name = place
    with tensors_of(file) as tensors:
        tensor: Tensor = tensors.get_tensor(name)
    return tensor


def tensors_of(file: Path) -> Any:
    from safetensors import safe_open  # a package that nothing else here needs

    return safe_open(file, framework="pt")


class Numbers:
    """What a checkpoint has to agree on and shows in no shape."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def state_dict(self) -> dict[str, str]:
        return {"config": repr(self.config)}

    def load_state_dict(self, saved: dict[str, str]) -> None:
        if saved != self.state_dict():
            raise SystemExit(
                "the checkpoint was trained with another Config; resume it with the same"
                f" --weights as before\n  saved: {saved['config']}\n  now:   {self.config}"
            )


def with_numbers(file: Path, planned: Config) -> Config:
    """RoPE base and scaling and norm epsilon, after a comparison of the sizes."""
    found = read_json(file)
    derived = {
        "num_key_value_heads": planned.num_attention_heads,
        "head_dim": planned.hidden_size // planned.num_attention_heads,
    }
    sizes = {key: found.get(key) or derived.get(key) for key in SIZES}
    for key, value in sizes.items():
        if value != getattr(planned, key):
            refuse(file, f"{key} is {value}, the plan has {getattr(planned, key)}")
    window = found.get("sliding_window")
    if not found.get("use_sliding_window", True):
        window = None
    if window is not None:
        refuse(file, f"sliding_window is {window}, the decoder has no window")
    activation = found.get("hidden_activation") or found.get("hidden_act", ACTIVATION)
    if activation != ACTIVATION:
        refuse(file, f"hidden_act is {activation}, the decoder has {ACTIVATION}")
    if "rms_norm_eps" not in found:
        refuse(file, "rms_norm_eps is missing")

    # transformers 5 writes rope_parameters, before it was rope_scaling and rope_theta.
    rope = found.get("rope_parameters") or found.get("rope_scaling") or {}
    part = rope.get("partial_rotary_factor", found.get("partial_rotary_factor", 1.0))
    if part != 1.0:
        refuse(file, f"partial_rotary_factor is {part}, the decoder turns whole heads")
    theta = rope.get("rope_theta", found.get("rope_theta", 10000.0))
    return replace(
        planned,
        rope_theta=float(theta),
        rope_scaling=scaling(file, rope),
        norm_eps=float(found["rms_norm_eps"]),
    )


def scaling(file: Path, rope: dict[str, Any]) -> RopeScaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        refuse(file, f"RoPE is scaled by {kind!r}, the decoder knows llama3 only")
    keys = [field.name for field in fields(RopeScaling)]
    if missing := [key for key in keys if key not in rope]:
        refuse(file, f"the scaling of RoPE lacks {', '.join(missing)}")
    return RopeScaling(**{key: float(rope[key]) for key in keys})


def located(folder: Path, config: Config) -> dict[str, Place]:
    """Each parameter's place, where the folder has exactly the decoder's tensors."""
    places: dict[str, Place] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    problems: list[str] = []
    for file in shards(folder):
        with tensors_of(file) as tensors:
            names = tensors.keys()
            for name in names:
                if name in places:
                    problems.append(f"{name} is in {places[name][0].name} too")
                places[name] = (file, name)
                shapes[name] = tuple(tensors.get_slice(name).get_shape())
    with torch.device("meta"):
        parameters = dict(Decoder(config).named_parameters())
    # Adapters are nobody's but this training's.
    wanted = {name: original(name) for name in parameters if "lora_" not in name}
    for name, theirs in wanted.items():
        shape = tuple(parameters[name].shape)
        if theirs not in places:
            problems.append(f"{theirs} is missing")
        elif shapes[theirs] != shape:
            problems.append(f"{theirs} is {shapes[theirs]}, the decoder has {shape}")
    for theirs in sorted(set(places) - set(wanted.values())):
        if theirs.endswith(".rotary_emb.inv_freq"):
            continue  # a table that old versions saved; it follows from rope_theta
        problems.append(f"{theirs} has no place in the decoder")
    if problems:
        more = f" and {len(problems) - 6} more" if len(problems) > 6 else ""
        refuse(folder, "; ".join(problems[:6]) + more)
    return {name: places[theirs] for name, theirs in wanted.items()}


def original(name: str) -> str:
    return name if name.startswith("lm_head.") else f"model.{name}"


def shards(folder: Path) -> list[Path]:
    """Those of the index: beside them may lie the same weights in another form."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
    for name in names:
        if not (folder / name).is_file():
            refuse(folder, f"there is no {name}")
    return [folder / name for name in names]


def read_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        refuse(file, f"cannot be read: {error}")
    if not isinstance(found, dict):
        refuse(file, "is no JSON object")
    return found


def refuse(where: Path, why: str) -> NoReturn:
    raise SystemExit(f"--weights: {where}: {why}")
