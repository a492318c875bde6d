"""A file of ``accelerate config`` as wishes; a DeepSpeed config that it names is read by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dsgen.reading import Reading, Said, wishes_of_said

OWN_KEYS = frozenset({"compute_environment", "distributed_type", "deepspeed_config", "fsdp_config", "num_processes"})
_STRATEGIES: Mapping[str, int] = {
    "full_shard": 3,
    "1": 3,
    "shard_grad_op": 2,
    "2": 2,
    "no_shard": 0,
    "3": 0,
    "hybrid_shard": 3,
    "4": 3,
    "hybrid_shard_zero2": 2,
    "5": 2,
}
"""torch/distributed/fsdp/api.py:ShardingStrategy, by name and by number."""
_HYBRID = frozenset({"hybrid_shard", "4", "hybrid_shard_zero2", "5"})


@dataclass(frozen=True, slots=True)
class Accelerate:
    """What such a file says."""

    said: tuple[Said, ...]
    world_size: int | None
    config_file: str | None
    """The DeepSpeed config that it names."""
    config: Mapping[str, Any]
    """The one that accelerate makes where none is named (accelerate/utils/dataclasses.py:DeepSpeedPlugin)."""
    framework: Literal["deepspeed", "fsdp1", "fsdp2", "ddp"] | None
    """Who shards; None: the file does not say."""
    hybrid: bool
    """States are sharded within each node, and every node has all of them."""

    @property
    def reading(self) -> Reading:
        """What torch's own frameworks do by it: FSDP reduces gradients in the compute type."""
        said = list(self.said)
        precision = next((each for each in said if each.path == ("training", "precision")), None)
        if precision is not None and self.framework in ("fsdp1", "fsdp2"):
            said.append(Said(("want", "gradient_precision"), precision.value, precision.at, "mixed_precision"))
        if not any(each.path == ("want", "zero_stage") for each in said):
            said.append(Said(("want", "zero_stage"), 0 if self.framework == "ddp" else 3, None, "accelerate's default"))
        return Reading(wishes=wishes_of_said(said), said=tuple(said))


def is_accelerate(value: Mapping[str, Any]) -> bool:
    """Whether a mapping is one of accelerate's configs."""
    return "distributed_type" in value or len(OWN_KEYS & value.keys()) >= 2


def read(given: Mapping[str, Any]) -> Accelerate:
    """Sizes, precision and sharding; where a DeepSpeed config is named, accelerate takes the rest from it."""
    inner = given.get("deepspeed_config")
    deepspeed = inner if isinstance(inner, Mapping) else {}
    sharding = given.get("fsdp_config")
    fsdp = sharding if isinstance(sharding, Mapping) else {}
    file = deepspeed.get("deepspeed_config_file")
    said = [*_machines(given), *_deepspeed(deepspeed), *read_fsdp(fsdp)]
    named = file if isinstance(file, str) and file else None
    processes = given.get("num_processes")
    whole = isinstance(processes, int) and not isinstance(processes, bool) and processes > 0
    strategy = str(fsdp.get("fsdp_sharding_strategy")).lower()
    return Accelerate(
        tuple(said),
        processes if whole else None,
        named,
        _config(deepspeed, given),
        _framework(given, fsdp),
        strategy in _HYBRID,
    )


def _framework(
    given: Mapping[str, Any], fsdp: Mapping[str, Any]
) -> Literal["deepspeed", "fsdp1", "fsdp2", "ddp"] | None:
    kind = str(given.get("distributed_type")).upper()
    if kind == "FSDP" or (fsdp and kind != "DEEPSPEED"):
        # accelerate/utils/dataclasses.py:FullyShardedDataParallelPlugin: version 1 unless it is told otherwise.
        return "fsdp2" if str(fsdp.get("fsdp_version", 1)) == "2" else "fsdp1"
    if kind == "DEEPSPEED" or isinstance(given.get("deepspeed_config"), Mapping):
        return "deepspeed"
    return "ddp" if kind in ("MULTI_GPU", "NO", "FALSE") else None  # NO is false in YAML


def _config(section: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": section.get("zero_stage", 2)}
    for kind in ("optimizer", "param"):
        device = section.get(f"offload_{kind}_device", "none")
        path = section.get(f"offload_{kind}_nvme_path", "none")
        zero[f"offload_{kind}"] = {"device": device} | ({"nvme_path": path} if device == "nvme" else {})
    precision = given.get("mixed_precision")
    config = {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": section.get("gradient_accumulation_steps", 1),
        "zero_optimization": zero,
    }
    if "gradient_clipping" in section:
        config["gradient_clipping"] = section["gradient_clipping"]
    # "no" is fp32; a file without the key leaves it to the environment.
    switches = {name: {"enabled": precision == name} for name in ("bf16", "fp16")}
    return config | (switches if precision in ("bf16", "fp16", "no") else {})


def _machines(given: Mapping[str, Any]) -> Iterator[Said]:
    nodes = given.get("num_machines")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes > 0:
        yield Said(("hardware", "nodes"), nodes, ("num_machines",))
    precision = given.get("mixed_precision")
    if precision in ("bf16", "fp16", "no"):
        name = "fp32" if precision == "no" else precision
        yield Said(("training", "precision"), name, ("mixed_precision",))


def _deepspeed(section: Mapping[str, Any]) -> Iterator[Said]:
    for key, path, kinds in (
        ("zero_stage", ("want", "zero_stage"), (0, 1, 2, 3)),
        ("offload_optimizer_device", ("want", "offload_optimizer"), ("none", "cpu", "nvme")),
        ("offload_param_device", ("want", "offload_parameters"), ("none", "cpu", "nvme")),
    ):
        value = section.get(key)
        if value in kinds and not isinstance(value, bool):
            yield Said(path, value, ("deepspeed_config", key))
    count = section.get("gradient_accumulation_steps")
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        yield Said(("want", "accumulation"), count, ("deepspeed_config", "gradient_accumulation_steps"))
    clipping = section.get("gradient_clipping")
    if isinstance(clipping, int | float) and not isinstance(clipping, bool) and clipping >= 0:
        yield Said(("training", "gradient_clipping"), clipping, ("deepspeed_config", "gradient_clipping"))
    path_ = section.get("offload_optimizer_nvme_path", section.get("offload_param_nvme_path"))
    if isinstance(path_, str) and path_.startswith("/"):
        yield Said(("hardware", "nvme", "path"), path_, ("deepspeed_config", "offload_optimizer_nvme_path"))


def read_fsdp(section: Mapping[str, Any]) -> Iterator[Said]:
    """An ``fsdp_config``; the Trainer's has the same keys, with or without ``fsdp_`` in front."""
    if not section:
        return
    section = {key if key.startswith("fsdp_") else f"fsdp_{key}": value for key, value in section.items()}
    yield Said(("target", "format"), "fsdp2", ("fsdp_config",), "FSDP, which dsgen writes as FSDP2")
    strategy = section.get("fsdp_sharding_strategy", section.get("fsdp_reshard_after_forward"))
    stage = _STRATEGIES.get(str(strategy).lower())
    if isinstance(strategy, bool) or str(strategy).lower() in ("true", "false"):
        stage = 3 if str(strategy).lower() == "true" else 2  # FSDP2's reshard_after_forward
    if stage is not None:
        yield Said(("want", "zero_stage"), stage, ("fsdp_config", "fsdp_sharding_strategy"), f"{strategy}")
    if str(section.get("fsdp_offload_params")).lower() == "true":
        yield Said(("want", "offload_optimizer"), "cpu", ("fsdp_config", "fsdp_offload_params"))
        yield Said(("want", "offload_parameters"), "cpu", ("fsdp_config", "fsdp_offload_params"))
    if str(section.get("fsdp_activation_checkpointing")).lower() == "true":
        yield Said(("want", "checkpointing"), "full", ("fsdp_config", "fsdp_activation_checkpointing"))
