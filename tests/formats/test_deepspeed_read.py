"""Reading a config: what it fixes, what it leaves open, what it cannot say; and the way back from what we write."""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from formats import written_plans as plans

from dsgen.documents.document import Document, DocumentError
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.source import decode
from dsgen.errors import InputError
from dsgen.formats.deepspeed.read import read
from dsgen.plan import Buckets, Checkpointing, Plan, Swap, Wishes, ZeroPP, obeyed
from dsgen.reading import Reading
from dsgen.spec.values import Optimizer, Scheduler, Training
from dsgen.target import Loader, Target

SHARED = os.environ.get("DSGEN_SHARED")


def reading(config: Any, loaded_by: Loader = "deepspeed", deepspeed: str = "0.19.8") -> Reading:
    text = config if isinstance(config, str) else json.dumps(config)
    return read(Document(text, read_hjson(text)), Target(loaded_by=loaded_by, versions={"deepspeed": deepspeed}))


def wishes(config: Any, **target: Any) -> Wishes:
    return reading(config, **target).wishes


# Sizes that no default and no formula gives, so that what comes back was read.
ODD = Buckets(
    reduce=11_111_111,
    allgather=22_222_222,
    prefetch=3_333_333,
    max_live_parameters=444_444_444,
    max_reuse_distance=55_555_555,
    persistence_threshold=66_666,
    sub_group_size=77_777_777,
)
SWAP = Swap(
    pin_memory=False,
    optimizer_buffers=6,
    parameter_buffers=7,
    parameter_buffer_size=888_888_888,
    max_in_cpu=999_999,
)
OFFLOADS = {1: [("none", "none"), ("cpu", "none")], 3: [("none", "none"), ("cpu", "cpu"), ("nvme", "nvme")]}


def _grid() -> Iterator[dict[str, Any]]:
    for stage, precision in itertools.product((0, 1, 2, 3), ("bf16", "fp16", "fp32")):
        offloads = OFFLOADS.get(stage, [("none", "none"), ("cpu", "none")] if stage == 2 else [("none", "none")])
        for (optimizer, parameters), overlap, sums in itertools.product(offloads, (True, False), (None, "fp32")):
            if sums and (stage == 0 or precision == "fp32" or (stage == 1 and overlap)):
                continue  # not legal, or nothing to add up apart
            yield {
                "zero_stage": stage,
                "precision": precision,
                "offload_optimizer": optimizer,
                "offload_parameters": parameters,
                "overlap_comm": overlap if stage else None,
                "gradient_precision": sums,
                "buckets": ODD,
                "swap": SWAP,
                "micro_batch": 3,
                "accumulation": 5,
            }


GRID = list(_grid())
OTHER = plans.plan(zero_stage=0, precision="fp32", micro_batch=1, accumulation=1, swap=Swap())


def back(fields: dict[str, Any], config: dict[str, Any]) -> Plan:
    """The plan that the config's wishes make of one that differs wherever a config can speak."""
    return obeyed(OTHER, wishes(config))


@pytest.mark.parametrize("fields", GRID, ids=[str(at) for at in range(len(GRID))])
def test_what_is_written_reads_back_as_the_same_plan(fields: dict[str, Any]) -> None:
    config = plans.config(**fields)
    plan, found = plans.plan(**fields), back(fields, config)
    for name in ("zero_stage", "precision", "offload_optimizer", "offload_parameters", "micro_batch", "accumulation"):
        assert getattr(found, name) == getattr(plan, name), name
    assert found.overlaps == plan.overlaps or not plan.zero_stage
    assert found.sums_apart == plan.sums_apart
    # Written once more, nothing has changed: what acts at the stage has all come back.
    again = {name: getattr(found, name) for name in (*fields, "zeropp")}
    assert plans.config(**again) == config


def test_split_models_and_second_copies_read_back() -> None:
    split = plans.config(loaded_by="transformers", zero_stage=1, tensor_parallel=2)
    assert wishes(split, loaded_by="transformers").tensor_parallel == 2
    copies = ZeroPP(quantized_weights=True, secondary_partition=8)
    nodes = {"world_size": 16, "gpus_per_node": 8, "zero_stage": 3, "zeropp": copies}
    found = wishes(plans.config(on=plans.hardware(nodes=2), **nodes))
    assert found.zeropp == copies


def test_the_training_reads_back() -> None:
    training = Training(
        optimizer=Optimizer(type="adam", lr=3e-4, betas=(0.8, 0.95), eps=1e-7, weight_decay=0.05),
        scheduler=Scheduler(type="cosine", warmup_steps=77, total_steps=999, min_lr_ratio=0.1),
        gradient_clipping=0.7,
    )
    found = reading(plans.config(training=training))
    said = {each.path: each.value for each in found.said}
    for name in ("type", "lr", "eps", "weight_decay"):
        assert said["training", "optimizer", name] == getattr(training.optimizer, name)
    assert said["training", "optimizer", "betas"] == [0.8, 0.95]
    assert training.scheduler is not None
    for name in ("type", "warmup_steps", "total_steps", "min_lr_ratio"):
        assert said["training", "scheduler", name] == getattr(training.scheduler, name)
    assert said["training", "gradient_clipping"] == 0.7
    assert said["training", "global_batch"] == 2 * 4 * 8
    assert found.not_carried == ()


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine"])
def test_every_schedule_that_is_written_reads_back_whole(kind: str) -> None:
    training = Training(scheduler=Scheduler(type=kind, warmup_steps=10, total_steps=100))
    found = reading(plans.config(training=training))
    assert found.get("training", "scheduler", "type") == kind
    assert found.get("training", "scheduler", "warmup_steps") == 10
    assert found.not_carried == ()


def test_an_empty_config_is_plain_fp32_data_parallelism() -> None:
    found = wishes({})
    assert (found.zero_stage, found.precision, found.offload_optimizer) == (0, "fp32", "none")
    assert found.micro_batch is None
    assert found.buckets.reduce is None


def test_auto_stays_open_where_the_loader_fills_it() -> None:
    config = {
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_clipping": "auto",
        "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "sub_group_size": "auto"},
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}},
    }
    found = reading(config, "transformers")
    assert found.wishes.precision is None
    assert found.wishes.micro_batch is None
    assert found.get("training", "gradient_clipping") is None
    assert found.get("training", "optimizer", "lr") is None
    assert {"bf16.enabled", "zero_optimization.reduce_bucket_size", "optimizer.params.lr"} <= set(found.open)
    # transformers fills no sub_group_size: pydantic drops the word, and the default acts.
    assert [left.key for left in found.not_carried] == ["zero_optimization.sub_group_size"]


def test_auto_for_deepspeed_itself_is_what_it_makes_of_it() -> None:
    config = {"zero_optimization": {"stage": "auto"}, "bf16": {"enabled": "auto"}}
    found = reading(config)
    assert (found.wishes.zero_stage, found.wishes.precision) == (0, "fp32")
    # Before 0.17.1 any text switched it on.
    assert wishes(config, deepspeed="0.16.9").precision == "bf16"
    assert found.open == ()


def test_a_file_without_precision_says_nothing_where_the_loader_adds_a_section() -> None:
    assert wishes({}, loaded_by="transformers").precision is None
    assert wishes({"fp16": {"enabled": False}}, loaded_by="transformers").precision == "fp32"


def test_other_spellings_and_number_forms() -> None:
    found = wishes(
        '{zero_optimization: {stage: "3", cpu_offload: true, cpu_offload_param: true, reduce_bucket_size: 5e8\n'
        "max_live_parameters: 1e9}}"
    )
    assert (found.zero_stage, found.offload_optimizer, found.offload_parameters) == (3, "cpu", "cpu")
    assert found.buckets.reduce == 500_000_000
    assert found.buckets.max_live_parameters == 10**9


@pytest.mark.parametrize(("version", "pinned", "clipping"), [("0.19.8", True, 1.0), ("0.18.0", False, 0.0)])
def test_defaults_that_changed_are_those_of_the_version(version: str, pinned: bool, clipping: float) -> None:
    found = reading({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}, deepspeed=version)
    assert found.wishes.swap.pin_memory is pinned
    assert found.get("training", "gradient_clipping") == clipping


def test_what_does_not_act_at_the_stage_fixes_nothing_and_is_named() -> None:
    found = reading(
        {
            "zero_optimization": {
                "stage": 2,
                "offload_param": {"device": "cpu", "pin_memory": True},
                "stage3_max_live_parameters": 5,
            }
        }
    )
    assert found.wishes.offload_parameters == "none"
    assert found.wishes.buckets.max_live_parameters is None
    assert found.wishes.swap.pin_memory is None
    assert {left.key for left in found.not_carried} == {
        "zero_optimization.offload_param.device",
        "zero_optimization.offload_param.pin_memory",
        "zero_optimization.stage3_max_live_parameters",
    }
    assert all("acts at stage 3; the stage is 2" in left.why for left in found.not_carried)


def test_what_has_no_meaning_to_a_plan_survives_as_it_stands() -> None:
    config = {
        "tensorboard": {"enabled": True, "job_name": "x"},
        "steps_per_print": 10,
        "zero_optimization": {"stage": 1},
    }
    config["zero_optimization"] |= {"round_robin_gradients": True}  # type: ignore[operator]
    found = reading(config)
    assert found.passthrough == {
        "tensorboard": {"enabled": True, "job_name": "x"},
        "steps_per_print": 10,
        "zero_optimization": {"round_robin_gradients": True},
    }
    assert found.not_carried == ()


def test_what_changes_bytes_and_has_no_word_is_named_with_the_reason() -> None:
    found = reading(
        {
            "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3}},
            "activation_checkpointing": {"partition_activations": True, "cpu_checkpointing": True},
            "torch_autocast": {"enabled": True, "dtype": "bfloat16"},
            "zero_optimisation": {"stage": 1},
        }
    )
    left = {each.key: each.why for each in found.not_carried}
    assert set(left) == {
        "zero_optimization.offload_optimizer.ratio",
        "activation_checkpointing",
        "torch_autocast",
        "zero_optimisation",
    }
    assert left["zero_optimisation"] == "DeepSpeed has no such key"


def test_sections_that_are_off_say_nothing() -> None:
    found = reading(
        {"torch_autocast": {"enabled": False}, "compile": {"deepcompile": False}, "amp": {"enabled": False}}
    )
    assert [left.key for left in found.not_carried] == ["amp"]  # gone since 0.19.8, whatever it holds


def test_adam_is_adamw_unless_told_otherwise() -> None:
    for params, name in (({}, "adamw"), ({"adam_w_mode": False}, "adam"), ({"adam_w_mode": True}, "adamw")):
        found = reading({"optimizer": {"type": "Adam", "params": params}})
        assert found.get("training", "optimizer", "type") == name
        assert found.get("training", "optimizer", "lr") == 0.001  # the constructor's own


@pytest.mark.parametrize(
    "value", [None, True, [], {}, "8 GPUs", "", -1, 0, 1.5, float("inf"), float("nan"), 10**400, "1" * 5000]
)
@pytest.mark.parametrize("key", ["train_batch_size", "gradient_accumulation_steps"])
def test_a_value_that_is_none_fixes_nothing_and_is_named(key: str, value: Any) -> None:
    try:
        found = reading({key: value})
    except DocumentError:
        return  # a number that no reader of JSON takes
    assert found.wishes.accumulation is None
    assert found.get("training", "global_batch") is None
    if value is not None:
        assert [left.key for left in found.not_carried] == [key]


@pytest.mark.parametrize("section", ["zero_optimization", "fp16", "optimizer", "scheduler", "data_types"])
@pytest.mark.parametrize("value", [None, 3, "on", [], [1], {"params": []}, {"type": 3}, {"stage": {}, "enabled": []}])
def test_sections_of_any_shape_are_no_reason_to_fail(section: str, value: Any) -> None:
    reading({section: value})


@pytest.mark.parametrize("config", [[], "x", 3, None])
def test_what_is_no_config_is_refused(config: Any) -> None:
    with pytest.raises(InputError, match="holds no DeepSpeed config"):
        reading(json.dumps(config))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _has(tree: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True


# Said by what stands beside them, or said twice; off, the same as nothing; a warm-up from 0.
_SILENT = {
    "pin_memory",
    "nvme_path",
    "adam_w_mode",
    "adamw_mode",
    "warmup_min_lr",
    "warmup_min_ratio",
    "warmup_max_lr",
    "enabled",
    "warmup_type",
}


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED names no folder with configs that people wrote")
def test_of_what_people_wrote_nothing_is_dropped_in_silence() -> None:
    files = sorted((Path(SHARED or "") / "corpus" / "deepspeed_json").iterdir())
    assert len(files) > 300
    count = 0
    for file in files:
        try:
            text = decode(file.read_bytes())
            root = read_hjson(text)
        except DocumentError:
            continue
        if not isinstance(root.value, dict):
            continue
        for loaded_by in ("deepspeed", "transformers"):
            found = read(Document(text, root), Target(loaded_by=loaded_by))
            said = {each.at for each in found.said if each.at}
            named = [*found.open, *(left.key for left in found.not_carried)]
            for path, value in _leaves(root.value):
                dotted = ".".join(path)
                known = path in said or _has(found.passthrough, path) or value is None or path[-1] in _SILENT
                known = known or any(dotted == key or dotted.startswith(f"{key}.") for key in named)
                known = known or any(
                    step.startswith(("_", "#", "//", "$")) or "comment" in step.lower() for step in path
                )
                assert known or value == {} or path[-1] == "params", (file.name, dotted, value)
                count += 1
    assert count > 5000


def test_checkpointing_is_no_matter_of_a_config() -> None:
    assert wishes(plans.config(checkpointing=Checkpointing("full"))).checkpointing is None
