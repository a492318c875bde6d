"""Who a file is written for, or linted for: format, loader, library versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Format = Literal["deepspeed", "fsdp2", "fsdp1", "ddp", "accelerate", "hf"]
Loader = Literal["deepspeed", "transformers", "accelerate", "lightning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a file is meant for. World size and GPU stand in Hardware."""

    format: Format = "deepspeed"
    loaded_by: Loader = "deepspeed"
    """Who reads the file: it decides the dialect and which "auto" values are filled."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Library name to version, for example {"deepspeed": "0.19.8", "torch": "2.13.0"}; newest known where absent."""
