"""What changes between two versions, and the edits that keep the training; known flips first, then any config."""

import json
import random
from typing import Any

import pytest
from deepspeed_configs import mutated, real_values

from dsgen.lint.config_file import read_config
from dsgen.lint.in_force import in_force
from dsgen.lint.target import make_target
from dsgen.lint.upgrade import Upgrade, upgrade

ZERO_2_CPU = {"stage": 2, "offload_optimizer": {"device": "cpu"}}


def upgraded(config: Any, old: str, new: str, loaded_by: Any = "deepspeed") -> Upgrade:
    text = config if isinstance(config, str) else json.dumps(config)
    file = read_config(text.encode(), loaded_by)
    return upgrade(file, make_target(old, loaded_by), make_target(new, loaded_by))


# config, versions, the key that changes, and the config that keeps it; sources: the shared facts, sections 0 and 1.
KEPT: list[tuple[Any, str, str, str, Any]] = [
    ({"a": 1}, "0.19.2", "0.19.3", "gradient_clipping", {"a": 1, "gradient_clipping": 0.0}),
    ({}, "0.15.1", "0.15.2", "steps_per_print", {"steps_per_print": 10}),
    (
        {"zero_optimization": ZERO_2_CPU},
        *("0.19.4", "0.19.5", "zero_optimization.offload_optimizer.pin_memory"),
        {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": False}}},
    ),
    (
        {"zero_optimization": {"stage": 2, "cpu_offload": True}},  # which stands for {"device": "cpu"}
        *("0.19.4", "0.19.5", "zero_optimization.offload_optimizer.pin_memory"),
        {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": False}}},
    ),
    (
        {"zero_optimization": {"stage": 3, "cpu_offload_param": True}},
        *("0.19.4", "0.19.5", "zero_optimization.offload_param.pin_memory"),
        {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": False}}},
    ),
    (
        {"bf16": {"enabled": True}, "gradient_clipping": 1},
        *("0.19.2", "0.19.3", "bf16.check_grad_overflow"),
        {"bf16": {"enabled": True, "check_grad_overflow": False}, "gradient_clipping": 1},
    ),
    (
        {"scheduler": {"type": "WarmupLR", "params": {}}},
        *("0.17.1", "0.17.2", "scheduler.params.warmup_max_lr"),
        {"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.001}}},
    ),
    ({"aio": {"thread_count": 4}}, "0.16.3", "0.16.4", "aio.thread_count", {"aio": {"intra_op_parallelism": 4}}),
    ({"amp": {"enabled": False}}, "0.19.7", "0.19.8", "amp", {}),
    ({"fp16": {"enabled": False, "opt_level": 1}}, "0.17.0", "0.17.1", "fp16.opt_level", {"fp16": {"enabled": False}}),
    ({"fp16": {"enabled": "auto"}}, "0.17.0", "0.17.1", "fp16.enabled", {"fp16": {"enabled": True}}),
    (
        {"zero_optimization": {"stage": 1, "reduce_bucket_size": 1.5}},
        *("0.14.4", "0.15.0", "zero_optimization.reduce_bucket_size"),  # pydantic 1 cut fractions off
        {"zero_optimization": {"stage": 1, "reduce_bucket_size": 1}},
    ),
]


@pytest.mark.parametrize(
    ("config", "old", "new", "key", "after"), KEPT, ids=[f"{case[3]}-{number}" for number, case in enumerate(KEPT)]
)
def test_an_edit_keeps_it(config: Any, old: str, new: str, key: str, after: Any) -> None:
    found = upgraded(config, old, new)
    assert [(".".join(one.path), one.kept) for one in found.differences] == [(key, True)]
    assert json.loads(found.edited) == after


LOST: list[tuple[Any, str, str, str]] = [
    ({"sparse_gradients": True}, "0.19.7", "0.19.8", "sparse_gradients"),
    ({"amp": {"enabled": True}}, "0.19.7", "0.19.8", "amp"),
    ({"optimizer": {"type": "OneBitAdam"}}, "0.19.6", "0.19.7", "optimizer.type"),
    ({"zero_optimization": {"stage": 2, "reduce_bucket_size": 0}}, "0.19.5", "0.19.6", "reduce_bucket_size"),
    ({"zero_optimization": {"stage": "2"}}, "0.14.4", "0.15.0", "zero_optimization.stage"),
]


@pytest.mark.parametrize(("config", "old", "new", "key"), LOST, ids=[case[3] for case in LOST])
def test_what_no_edit_keeps(config: Any, old: str, new: str, key: str) -> None:
    found = upgraded(config, old, new)
    assert [one.kept for one in found.differences if ".".join(one.path).endswith(key)] == [False]


@pytest.mark.parametrize("old_switch", [False, None])
def test_an_old_switch_that_is_off_stands_for_nothing(old_switch: Any) -> None:
    config = {"zero_optimization": {"stage": 3, "cpu_offload": old_switch, "cpu_offload_param": old_switch}}
    assert upgraded(config, "0.19.4", "0.19.5").differences == ()
    below = {"zero_optimization": {"stage": 2, "cpu_offload_param": True}}  # acts at stage 3
    assert upgraded(below, "0.19.4", "0.19.5").differences == ()


def test_a_key_that_the_trainer_fills_in_stays_as_it_was() -> None:
    config = {"gradient_clipping": "auto"}
    assert upgraded(config, "0.19.2", "0.19.3", "transformers").differences == ()
    assert upgraded({}, "0.19.2", "0.19.3", "transformers").differences[0].path == ("gradient_clipping",)


def test_keys_that_only_together_are_refused() -> None:
    # A share of the optimizer on the CPU below stage 3: accepted and ignored by pydantic 1, an error since 0.15.0.
    config = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}
    assert [error.code for error in upgraded(config, "0.14.4", "0.15.0").errors] == ["DS308"]
    assert not upgraded(config, "0.15.0", "0.15.1").errors


def test_many_keys_are_kept_as_well_as_one() -> None:
    found = upgraded({"fp16": {"enabled": False, **{f"key{i}": i for i in range(250)}}}, "0.17.0", "0.17.1")
    assert [one.kept for one in found.differences] == [True] * 250
    assert json.loads(found.edited) == {"fp16": {"enabled": False}}


def test_comments_and_layout_stay() -> None:
    text = '{\n  // ours\n  "train_batch_size": 8, # eight\n  "aio": {"thread_count": 2},\n}\n'
    edited = upgraded(text, "0.16.3", "0.19.8").edited
    assert edited.startswith('{\n  // ours\n  "train_batch_size": 8, # eight\n  "aio": {"intra_op_parallelism": 2},\n')


def test_nothing_changes_between_a_version_and_itself_and_edits_hold() -> None:
    rng = random.Random()
    base = list(real_values())
    for config in base[:40] + [mutated(rng.choice(base), rng) for _ in range(60)]:
        old, new = rng.choice([("0.14.4", "0.17.0"), ("0.16.9", "0.19.8"), ("0.19.8", "0.15.4")])
        assert upgraded(config, old, old).differences == ()
        found = upgraded(config, old, new)
        edited = in_force(read_config(found.edited.encode(), "deepspeed"), make_target(new, "deepspeed"))
        acts = {value.means: value.value for value in edited if value.fate == "acts"}
        before = in_force(found.file, make_target(old, "deepspeed"))
        left = {one.path for one in found.differences if not one.kept}
        for value in before:
            if value.fate == "acts" and value.means in acts and value.path not in left and value.means not in left:
                assert acts[value.means] == value.value, (config, value)


@pytest.mark.parametrize(("loaded_by", "steps", "kept"), [("deepspeed", 0, 2), ("transformers", 1e3, 1000)])
def test_a_warm_up_that_was_read_as_another_number(loaded_by: Any, steps: float, kept: int) -> None:
    """Until 0.19.3 WarmupLR took max(2, n) of any number; since then a whole number above 0 (to JSON, 1e3 is none)."""
    config = {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": steps, "warmup_max_lr": 0.1}}}
    found = upgraded(config, "0.19.2", "0.19.3", loaded_by)
    [one] = [one for one in found.differences if one.path[-1] == "warmup_num_steps"]
    assert one.kept
    written = json.loads(found.edited)["scheduler"]["params"]["warmup_num_steps"]
    assert (written, type(written)) == (kept, int)
