"""What DeepSpeed makes of a config: the stage, what is on, where things are offloaded. None: nobody can tell."""

from typing import Any, Literal

from dsgen.lint.coerce import REFUSED, by_pydantic
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.schema import deepspeed_schema, facts
from dsgen.lint.target import LintTarget

Offload = Literal["offload_param", "offload_optimizer"]


def stage(file: ConfigFile, target: LintTarget) -> int | None:
    """The ZeRO stage that is in force."""
    section = file.get("zero_optimization")
    if isinstance(section, bool):
        return int(section)
    if _is_misspelt(file, target, "zero_optimization", "stage"):
        return None
    value = file.get("zero_optimization", "stage", default=0)
    if value == "auto":
        # Only accelerate fills it in; where DeepSpeed meets the word, it takes the default.
        return 0 if target.loaded_by in ("deepspeed", "transformers") else None
    number = value if type(value) is int else by_pydantic(value, ("integer",), target.since("0.15.0"))
    return number if number is not REFUSED and number in (0, 1, 2, 3) else None


def is_on(file: ConfigFile, section: str, target: LintTarget) -> bool | None:
    """Whether ``enabled`` of a section holds."""
    if _is_misspelt(file, target, section, "enabled"):
        return None
    value = file.get(section, "enabled", default=False)
    if isinstance(value, bool):
        return value
    if value == "auto" and target.loaded_by != "deepspeed":
        return None
    if section in ("fp16", "bf16") and not target.since("0.17.1"):
        return bool(value)  # any text is true there, "false" and "auto" as well
    if value == "auto":
        return False
    made = by_pydantic(value, ("boolean",), modern=True)
    return made if isinstance(made, bool) else None


def _is_misspelt(file: ConfigFile, target: LintTarget, section: str, key: str) -> bool:
    """Whether the section, or this key of it, stands there under a wrong name: what was meant is not known."""
    if file.has(section, key):
        return False
    from dsgen.lint.schema_walk import is_misspelt  # late: it brings the schema along

    return is_misspelt(file, target, section) or is_misspelt(file, target, section, key)


def offload_device(file: ConfigFile, what: Offload) -> str | None:
    """Where to: none, cpu or nvme; none where the section or its device is missing."""
    device = file.get("zero_optimization", what, "device", default="none")
    return device if device in ("none", "cpu", "nvme") else None


def whole(value: Any) -> int | None:
    """A positive whole number as it stands; None for "auto" and all else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def optimizer_type(file: ConfigFile) -> str | None:
    """The optimizer's name as DeepSpeed looks it up: its own names in lower case, those of torch as they are."""
    name = file.get("optimizer", "type")
    if not isinstance(name, str):
        return None
    own = facts(deepspeed_schema()["properties"]["optimizer"])["variants"]["cases"]
    return name.lower() if name.lower() in own else name


def data_parallel_ranks(file: ConfigFile, target: LintTarget) -> int | None:
    """Processes divided by those that share a batch (tensor and sequence parallelism); None where not known.

    A pipeline's stages are set in code, so with a pipeline section the figure is not known.
    """
    if target.world_size is None or file.has("pipeline"):
        return None
    tensor = whole(file.get("tensor_parallel", "autotp_size")) or 1
    sequence = whole(file.get("sequence_parallel_size")) or 1
    ranks, rest = divmod(target.world_size, tensor * sequence)
    return None if rest else ranks


def started(target: LintTarget) -> tuple[tuple[Any, str], ...]:
    """The line that says how many processes there are, as a related place; none where a flag said it."""
    return ((target.launch, f"{target.world_size} processes are started here"),) if target.launch else ()
