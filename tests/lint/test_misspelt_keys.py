"""A key under a wrong name is one mistake: the right one is named, and its absence is not told as well."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from deepspeed_configs import lint

from dsgen.facts.tables import rows
from dsgen.lint import schema as sch
from dsgen.lint.target import make_target

RIGHT: list[dict[str, Any]] = [
    {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 8,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
        "scheduler": {
            "type": "WarmupDecayLR",
            "params": {
                "total_num_steps": 1000,
                "warmup_num_steps": 100,
                "warmup_max_lr": 1e-4,
                "warmup_type": "linear",
            },
        },
        "bf16": {"enabled": True},
        "zero_optimization": {
            "stage": 3,
            "overlap_comm": True,
            "reduce_bucket_size": 5e8,
            "stage3_prefetch_bucket_size": 5e7,
            "stage3_gather_16bit_weights_on_model_save": True,
            "sub_group_size": 1e9,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/local", "pin_memory": True, "buffer_count": 4},
            "offload_param": {"device": "cpu", "pin_memory": True},
        },
        "aio": {"block_size": 1048576, "queue_depth": 8},
    },
    {
        "train_micro_batch_size_per_gpu": 1,
        "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 16, "loss_scale_window": 1000},
        "optimizer": {"type": "Adam", "params": {"lr": 1e-4}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4, "warmup_type": "linear"}},
        "zero_optimization": {
            "stage": 2,
            "allgather_bucket_size": 5e8,
            "offload_optimizer": {"device": "cpu", "pin_memory": True},
        },
        "sequence_parallel_size": 2,
        "data_parallel_size": 4,
        "tensorboard": {"enabled": True, "output_path": "x", "job_name": "y"},
        "data_types": {"grad_accum_dtype": "fp32"},
    },
]


@pytest.mark.parametrize("version", ["0.16.4", "0.19.8"])
@pytest.mark.parametrize("loaded_by", ["deepspeed", "transformers", None])
@pytest.mark.parametrize("config", RIGHT)
def test_one_finding_for_each_misspelt_key(config: dict[str, Any], loaded_by: Any, version: str) -> None:
    target = make_target(version, loaded_by, 8)
    before = [finding.message for finding in lint(config, target)]
    checked = 0
    for path, key in places(config, ()):
        for wrong in misspelt(key):
            new = [f for f in lint(renamed(config, path, key, wrong), target) if f.message not in before]
            assert [(f.code, f.help) for f in new] == [("DS110", f"did you mean {key!r}?")], (path, wrong, new)
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("row", rows("foreign_keys"), ids=lambda row: row["names"])
def test_names_of_other_programs_lead_to_the_right_key(row: dict[str, str]) -> None:
    *section, right = row["key"].split(".")
    for name in row["names"].split():
        inner: Any = {name: 1}
        if row["section"].endswith("params"):
            inner = {"type": "WarmupDecayLR", "params": inner}
        config = {"train_batch_size": 8, "gradient_clipping": 1.0} | (
            {row["section"].split(".")[0]: inner} if row["section"] else inner
        )
        said = [f for f in lint(config, make_target("0.19.8", "deepspeed", 1)) if f.code == "DS110"]
        assert len(said) == 1
        said_by = said[0].help or ""
        assert right in said_by or (".".join(section) in said_by and name == right), said_by
        assert exists(row["key"].split("."))


def test_a_key_of_another_name_beside_the_right_one_is_no_error() -> None:
    config = {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "learning_rate": 1e-4}
    [finding] = lint(config)
    assert (finding.severity, finding.help) == ("warning", "remove it: `optimizer.params.lr` is what counts")
    del config["optimizer"]["params"]["lr"]  # type: ignore[attr-defined]
    [finding] = lint(config)
    assert (finding.severity, finding.help) == ("error", "write `optimizer.params.lr`")


def places(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from places(inner, (*path, key))


def misspelt(key: str) -> Iterator[str]:
    if len(key) > 3:  # lr and eps resemble too much
        yield key[: len(key) // 2] + key[len(key) // 2 + 1 :]
        yield key.upper()
        yield key + "s"
    if "_" in key:
        yield key.replace("_", "-")
        yield key.replace("_", "")


def renamed(config: Any, path: tuple[str, ...], key: str, wrong: str) -> Any:
    copy = json.loads(json.dumps(config))
    value = copy
    for step in path:
        value = value[step]
    members = {wrong if name == key else name: inner for name, inner in value.items()}
    value.clear()
    value.update(members)
    return copy


def exists(path: list[str]) -> bool:
    """Whether the schema has such a key, for one of the schedules and optimizers at least."""
    schema = sch.deepspeed_schema()
    for key in path:
        variants = sch.facts(schema).get("variants", {"cases": {}})
        inner = [sch.resolve(case) for case in variants["cases"].values()] if key == variants.get("of") else []
        if inner:
            schema = {"properties": {name: each for case in inner for name, each in case["properties"].items()}}
            continue
        if key not in sch.resolve(schema).get("properties", {}):
            return False
        schema = sch.resolve(schema)["properties"][key]
    return True
