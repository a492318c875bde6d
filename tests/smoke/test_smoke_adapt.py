"""What is changed in a config, and what is left alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from smoke_helpers import CPU, case, config

from dsgen.smoke.adapt import Adapted, adapt
from dsgen.smoke.adapt.tiny import TINY_HIDDEN
from dsgen.smoke.decoders import default_decoder
from dsgen.smoke.values import Filling, Machine, Options

GPU = replace(CPU, device="cuda", devices=8, device_name="A100", fp16=True)


def adapted(
    content: dict[str, Any],
    machine: Machine = CPU,
    processes: int = 2,
    filling: Filling | None = None,
    native_ops: bool = False,
) -> Adapted:
    return adapt(case(content, filling=filling), machine, Options(native_ops=native_ops), processes, Path("run"))


def changes(one: Adapted) -> dict[str, tuple[Any, Any]]:
    return {change.key: (change.before, change.after) for change in one.changes}


def test_nothing_to_change() -> None:
    content = config(2, optimizer={"type": "SGD", "params": {"lr": 0.1}}, anything={"unknown": [1, {"x": None}]})
    one = adapted(content)
    assert one.config == content
    assert one.changes == ()
    assert one.optimizer is None


def test_the_given_config_is_not_touched() -> None:
    content = config(2, train_batch_size=64)
    before = config(2, train_batch_size=64)
    adapted(content)
    assert content == before


# (train_batch_size, micro, accumulation) as given -> as run on two processes
BATCHES = {
    "all three": ((128, 4, 4), (8, 2, 2)),
    "small already": ((4, 1, 2), (4, 1, 2)),
    "total and micro": ((128, 4, None), (8, 2, None)),
    "total and micro, no room to accumulate": ((4, 2, None), (4, 2, None)),
    "total and accumulation": ((64, None, 8), (8, None, 2)),
    "total": ((64, None, None), (4, None, None)),
    "a total of one": ((1, None, None), (2, None, None)),
    "micro": ((None, 16, None), (None, 2, None)),
    "micro and accumulation": ((None, 16, 8), (None, 2, 2)),
    "no number of processes fits": ((7, 2, 2), (7, 2, 2)),
    "text": (("32", 4, 1), ("32", 4, 1)),
    "a truth value": ((True, 4, 1), (True, 4, 1)),
    "zero": ((0, 4, 1), (0, 4, 1)),
    "none at all": ((None, None, None), (None, None, None)),
}
KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


@pytest.mark.parametrize(("given", "run"), BATCHES.values(), ids=BATCHES.keys())
def test_batches(given: tuple[Any, ...], run: tuple[Any, ...]) -> None:
    content = {key: value for key, value in zip(KEYS, given, strict=True) if value is not None}
    one = adapted({**content, "optimizer": {"type": "SGD"}})
    assert tuple(one.config.get(key) for key in KEYS) == run
    listed = changes(one)
    assert listed == {key: (a, b) for key, a, b in zip(KEYS, given, run, strict=True) if a != b}
    total, micro, steps = run
    if given != run and total is not None:
        # DeepSpeed: train_batch_size = micro x accumulation x world size; a missing one follows and must be whole.
        assert total % (2 * (micro or 1) * (steps or 1)) == 0
        if micro and steps:
            assert total == 2 * micro * steps


def test_tensor_parallel_ranks_share_their_batch() -> None:
    one = adapted(config(1, train_batch_size=64, tensor_parallel={"autotp_size": 2}), processes=4)
    assert one.config["train_batch_size"] == 1 * 2 * 2


def test_fp16_becomes_bf16_where_the_cpu_has_none() -> None:
    content = config(2, fp16={"enabled": True, "loss_scale": 0})
    one = adapted(content)
    assert one.config["fp16"] == {"enabled": False, "loss_scale": 0}
    assert one.config["bf16"] == {"enabled": True}
    assert changes(one)["fp16.enabled"] == (True, False)
    for machine in (replace(CPU, fp16=True), GPU):
        assert adapted(content, machine).config["fp16"] == content["fp16"]


@pytest.mark.parametrize(("planned", "run"), [("fp16", "bf16"), ("fp32", "fp32")])
def test_sums_stay_in_the_compute_type_or_apart_from_it(planned: str, run: str) -> None:
    content = config(2, fp16={"enabled": True, "loss_scale": 0}, data_types={"grad_accum_dtype": planned})
    assert adapted(content).config["data_types"] == {"grad_accum_dtype": run}


def test_both_types_stay_for_deepspeed_to_refuse() -> None:
    content = config(2, fp16={"enabled": True}, bf16={"enabled": True})
    assert adapted(content).config["fp16"] == {"enabled": True}


@pytest.mark.parametrize(("zero", "name"), [({}, "FusedAdam"), ({"offload_optimizer": {"device": "cpu"}}, "CPUAdam")])
@pytest.mark.parametrize("machine", [CPU, GPU], ids=["cpu", "gpu"])
def test_adam_is_torchs_unless_native(zero: dict[str, Any], name: str, machine: Machine) -> None:
    params = {"lr": 1e-3, "bias_correction": True}
    content = config(2, zero=zero, optimizer={"type": "AdamW", "params": params})
    one = adapted(content, machine)
    # DeepSpeed's own decays by 0 where nothing is said, torch's by 0.01.
    assert one.config["optimizer"]["params"] == {"lr": 1e-3, "torch_adam": True, "weight_decay": 0.0}
    why = next(change.why for change in one.changes if change.key == "optimizer.params.torch_adam")
    assert name in why
    assert "--native-ops" in why
    assert adapted(content, machine, native_ops=True).changes == ()


@pytest.mark.parametrize("name", ["Lamb", "OneBitAdam", "ZeroOneAdam", "Lion"])
def test_optimizers_that_only_a_gpu_has(name: str) -> None:
    content = config(1, optimizer={"type": name, "params": {"lr": 1e-3, "freeze_step": 2}})
    one = adapted(content)
    assert one.config["optimizer"] == {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}
    assert changes(one)["optimizer.type"] == (name, "AdamW")
    assert adapted(content, GPU).config["optimizer"] == content["optimizer"]


def test_without_an_optimizer_the_script_has_one() -> None:
    content = config(2, zero={"offload_optimizer": {"device": "cpu"}})
    del content["optimizer"]
    one = adapted(content)
    assert one.optimizer == {"type": "AdamW", "params": {"lr": 1e-3}}
    assert changes(one)["optimizer"] == (None, one.optimizer)
    assert changes(one)["zero_force_ds_cpu_optimizer"] == (None, False)


def test_nvme() -> None:
    content = config(3, zero={"offload_param": {"device": "nvme", "nvme_path": "/local_nvme"}})
    without = adapted(content)
    assert without.config["zero_optimization"]["offload_param"]["device"] == "cpu"
    assert "libaio" in without.changes[0].why
    having = adapted(content, replace(CPU, libaio=True))
    assert having.config["zero_optimization"]["offload_param"] == {"device": "nvme", "nvme_path": str(Path("run/nvme"))}


def test_features_of_gpus() -> None:
    content = config(3, zero={"zero_quantized_weights": True, "zero_hpz_partition_size": 8})
    one = adapted(content)
    assert changes(one)["zero_optimization.zero_quantized_weights"] == (True, False)
    assert changes(one)["zero_optimization.zero_hpz_partition_size"] == (8, 2)
    assert "zero_optimization.zero_quantized_weights" not in changes(adapted(content, GPU, processes=8))


def test_some_parameters_stay_partitioned() -> None:
    key = "stage3_param_persistence_threshold"
    assert adapted(config(3, zero={key: 40960})).config["zero_optimization"][key] == 10 * TINY_HIDDEN
    assert adapted(config(3, zero={key: 0})).config["zero_optimization"][key] == 0
    assert adapted(config(2, zero={key: 40960})).config["zero_optimization"][key] == 40960
    # By default it is 1e5, above every tensor of the tiny model, so that has to be lowered, too.
    assert adapted(config(3)).config["zero_optimization"][key] == 10 * TINY_HIDDEN
    assert key not in adapted(config(2)).config["zero_optimization"]


def test_the_tiny_model_is_as_wide_as_is_said() -> None:
    assert f"hidden_size={TINY_HIDDEN}," in default_decoder()


def test_monitors_are_off() -> None:
    content = config(1, wandb={"enabled": True, "project": "x"}, tensorboard={"enabled": False})
    one = adapted(content)
    assert one.config["wandb"] == {"enabled": False, "project": "x"}
    assert changes(one)["wandb.enabled"] == (True, False)
    assert "tensorboard.enabled" not in changes(one)


def test_auto_is_filled_as_the_trainer_does() -> None:
    """transformers/integrations/deepspeed.py with the defaults of TrainingArguments and the tiny model."""
    content: dict[str, Any] = {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "fp16": {"enabled": "auto"},
        "bf16": {"enabled": "auto"},
        "optimizer": {"type": "SGD", "params": {"lr": "auto", "weight_decay": "auto"}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
        "zero_optimization": {
            "stage": 3,
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_max_live_parameters": "auto",
        },
    }
    one = adapted(content, filling=Filling())
    assert one.config == {
        "train_micro_batch_size_per_gpu": 2,  # 8, then made small
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "fp16": {"enabled": False},
        "bf16": {"enabled": True},
        "optimizer": {"type": "SGD", "params": {"lr": 5e-5, "weight_decay": 0.0}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 5e-5, "warmup_num_steps": 1}},
        "zero_optimization": {
            "stage": 3,
            "reduce_bucket_size": 4096,
            "stage3_prefetch_bucket_size": 3686,
            "stage3_param_persistence_threshold": 640,
            "stage3_max_live_parameters": "auto",  # the Trainer does not know it; DeepSpeed drops it
        },
    }
    micro = next(change for change in one.changes if change.key == "train_micro_batch_size_per_gpu")
    assert (micro.before, micro.after) == ("auto", 2)
    assert "Trainer" in micro.why
    assert "small batch" in micro.why
    assert adapted(content).config["train_batch_size"] == "auto"  # DeepSpeed itself fills nothing


@pytest.mark.parametrize(
    ("sections", "bf16"),
    [
        ({"bf16": {"enabled": "auto"}}, True),
        ({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}, True),
        ({"fp16": {"enabled": "auto"}}, False),
        ({"bf16": {"enabled": "auto"}, "fp16": {"enabled": True}}, False),
    ],
)
def test_auto_types_are_never_both(sections: dict[str, Any], bf16: bool) -> None:
    one = adapted(config(1, **sections), replace(CPU, fp16=True), filling=Filling())
    on = [name for name in ("bf16", "fp16") if one.config.get(name, {}).get("enabled") is True]
    assert on == ["bf16" if bf16 else "fp16"]
