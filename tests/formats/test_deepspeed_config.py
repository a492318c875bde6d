"""What stands in a config, stage by stage, and what is said to stand elsewhere."""

import json
from typing import Any

import pytest
from hostile import HOSTILE
from written_plans import BUCKETS, config, hardware, written

from dsgen.errors import RefusedError
from dsgen.formats.deepspeed.write import no_json
from dsgen.plan import Checkpointing, Swap
from dsgen.spec.values import Method, Optimizer, Scheduler, Training

STAGE_3_KEYS = {
    "stage": 3,
    "contiguous_gradients": True,
    "overlap_comm": True,
    "reduce_scatter": True,
    "reduce_bucket_size": BUCKETS.reduce,
    "sub_group_size": BUCKETS.sub_group_size,
    "stage3_prefetch_bucket_size": BUCKETS.prefetch,
    "stage3_param_persistence_threshold": BUCKETS.persistence_threshold,
    "stage3_max_live_parameters": BUCKETS.max_live_parameters,
    "stage3_max_reuse_distance": BUCKETS.max_reuse_distance,
    "stage3_gather_16bit_weights_on_model_save": True,
}


def leaves(node: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    if isinstance(node, dict):
        return {key: value for name, item in node.items() for key, value in leaves(item, (*path, name)).items()}
    return {".".join(path): node}


def elsewhere(**changes: Any) -> dict[str, str]:
    return {item.key: item.pass_as for item in written(**changes).not_carried}


def test_stage_0_has_no_other_zero_key() -> None:
    assert config(zero_stage=0)["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize("stage", [1, 2])
def test_stages_1_and_2_gather_and_reduce_in_buckets(stage: int) -> None:
    zero = config(zero_stage=stage)["zero_optimization"]
    assert zero["reduce_bucket_size"] == BUCKETS.reduce
    assert zero["allgather_bucket_size"] == BUCKETS.allgather
    assert zero["overlap_comm"] is False  # DeepSpeed's own default below stage 3
    assert ("reduce_scatter" in zero) == (stage == 2)
    assert not [key for key in zero if key.startswith("stage3_") or key == "sub_group_size"]


def test_stage_3_has_its_own_keys_and_no_allgather_bucket() -> None:
    assert config(zero_stage=3)["zero_optimization"] == STAGE_3_KEYS


@pytest.mark.parametrize("overlap", [True, False])
def test_overlap_is_the_plans(overlap: bool) -> None:
    assert config(overlap_comm=overlap)["zero_optimization"]["overlap_comm"] is overlap


def test_cpu_offload() -> None:
    found = config(zero_stage=3, offload_optimizer="cpu", offload_parameters="cpu", swap=Swap(pin_memory=False))
    zero = found["zero_optimization"]
    assert zero["offload_optimizer"] == {"device": "cpu", "pin_memory": False}
    assert zero["offload_param"] == {"device": "cpu", "pin_memory": False}
    assert "aio" not in found


def test_nvme_offload_names_its_path_and_buffers() -> None:
    swap = Swap(optimizer_buffers=5, parameter_buffers=6, parameter_buffer_size=150_000_000, max_in_cpu=8)
    found = config(zero_stage=3, offload_optimizer="nvme", offload_parameters="nvme", swap=swap)
    assert found["zero_optimization"]["offload_optimizer"] == {
        "device": "nvme",
        "nvme_path": "/local_nvme",
        "buffer_count": 5,
        "pin_memory": True,
    }
    assert found["zero_optimization"]["offload_param"] == {
        "device": "nvme",
        "nvme_path": "/local_nvme",
        "buffer_count": 6,
        "buffer_size": 150_000_000,
        "max_in_cpu": 8,
        "pin_memory": True,
    }
    assert found["aio"]["intra_op_parallelism"] == 1  # thread_count is ignored since DeepSpeed 0.16.4


def test_an_illegal_plan_is_not_written() -> None:
    with pytest.raises(RefusedError, match="ignores offload_param below ZeRO stage 3"):
        written(zero_stage=2, offload_parameters="cpu")


def test_fp16_scales_its_loss_dynamically() -> None:
    fp16 = config(precision="fp16")["fp16"]
    assert fp16["enabled"] is True
    assert fp16["loss_scale"] == 0  # 0 means dynamic
    assert fp16["loss_scale_window"] > 0


def test_each_precision_has_its_section_and_no_other() -> None:
    for precision, sections in {"bf16": {"bf16"}, "fp16": {"fp16"}, "fp32": set()}.items():
        assert {"bf16", "fp16"} & set(config(precision=precision)) == sections


def test_accumulation_names_the_type_that_the_ledger_counts() -> None:
    assert config(accumulation=4)["data_types"] == {"grad_accum_dtype": "bf16"}
    assert config(accumulation=4, gradient_precision="fp32")["data_types"] == {"grad_accum_dtype": "fp32"}
    assert config(accumulation=4, gradient_precision="fp32", precision="fp16")["data_types"] == {
        "grad_accum_dtype": "fp32"
    }
    assert "data_types" not in config(accumulation=1)
    assert "data_types" not in config(accumulation=4, precision="fp32", gradient_precision="fp32")


def test_every_type_of_sum_has_its_reason() -> None:
    def why(**fields: Any) -> str:
        (reason,) = [r for r in written(**fields).reasons if r.key == "data_types.grad_accum_dtype"]
        return reason.why

    assert why(zero_stage=3, gradient_precision="fp32") == (
        "a sum in bf16 keeps 8 bits; in fp32 it takes 2 bytes a parameter more, divided by the ranks"
    )
    assert "BF16_Optimizer" in why(zero_stage=1, gradient_precision="fp32")
    assert "BF16_Optimizer" not in why(zero_stage=1, gradient_precision="fp32", precision="fp16")
    assert "BF16_Optimizer" not in why(zero_stage=1, gradient_precision="fp32", offload_optimizer="cpu")
    assert "in the compute type" in why(zero_stage=1)


def test_bf16_optimizer_gets_no_keys_that_it_ignores() -> None:
    assert set(config(zero_stage=1, gradient_precision="fp32")["zero_optimization"]) == {
        "stage",
        "allgather_bucket_size",
    }


def test_clipping_is_written_even_when_off() -> None:
    assert config(training=Training(gradient_clipping=0.0))["gradient_clipping"] == 0.0


def test_adam_is_not_turned_into_adamw() -> None:
    assert config(training=Training(optimizer=Optimizer(type="adam")))["optimizer"]["params"]["adam_w_mode"] is False
    assert "adam_w_mode" not in config()["optimizer"]["params"]


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_sgd_needs_a_word_from_stage_1_on(stage: int) -> None:
    found = config(zero_stage=stage, training=Training(optimizer=Optimizer(type="sgd", momentum=0.9)))
    assert found["optimizer"] == {"type": "SGD", "params": {"lr": 2e-5, "momentum": 0.9, "weight_decay": 0.0}}
    assert ("zero_allow_untested_optimizer" in found) == (stage > 0)


SCHEDULES = {
    "constant": ("WarmupLR", {"warmup_min_lr": 0, "warmup_max_lr": 2e-5, "warmup_num_steps": 10}),
    "linear": (
        "WarmupDecayLR",
        {"total_num_steps": 100, "warmup_min_lr": 0, "warmup_max_lr": 2e-5, "warmup_num_steps": 10},
    ),
    "cosine": (
        "WarmupCosineLR",
        {"total_num_steps": 100, "warmup_num_steps": 10, "warmup_min_ratio": 0, "cos_min_ratio": 0.1},
    ),
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_schedules(kind: str) -> None:
    ratio = 0.1 if kind == "cosine" else 0.0
    wanted = Scheduler(type=kind, warmup_steps=10, total_steps=100, min_lr_ratio=ratio)
    name, params = SCHEDULES[kind]
    assert config(training=Training(scheduler=wanted))["scheduler"] == {
        "type": name,
        "params": params | {"warmup_type": "linear"},
    }
    assert "training.scheduler.warmup_steps" not in elsewhere(training=Training(scheduler=wanted))


def test_no_schedule_no_section() -> None:
    assert "scheduler" not in config()
    assert "scheduler" not in config(training=Training(scheduler=Scheduler(type="constant")))


def test_a_fall_needs_its_length() -> None:
    training = Training(scheduler=Scheduler(type="linear", warmup_steps=10))
    with pytest.raises(RefusedError, match="total_steps"):
        written(training=training)
    params = config(training=training, loaded_by="transformers")["scheduler"]["params"]
    assert params["total_num_steps"] == "auto"


def test_what_no_schedule_of_deepspeed_can_do_is_said() -> None:
    for kind, field in (("cosine", "warmup_steps"), ("linear", "min_lr_ratio")):
        wanted = Scheduler(type=kind, warmup_steps=0, total_steps=100, min_lr_ratio=0.1)
        assert f"training.scheduler.{field}" in elsewhere(training=Training(scheduler=wanted))


# transformers/integrations/deepspeed.py: HfTrainerDeepSpeedConfig fills these, and of the sizes of
# buffers some that the plan has decided already.
FILLED = {
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "bf16.enabled",
    "fp16.enabled",
    "optimizer.params.lr",
    "optimizer.params.betas",
    "optimizer.params.eps",
    "optimizer.params.weight_decay",
    "scheduler.params.total_num_steps",
    "scheduler.params.warmup_min_lr",
    "scheduler.params.warmup_max_lr",
    "scheduler.params.warmup_num_steps",
}


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_auto_stands_exactly_where_the_trainer_fills_it(kind: str, precision: str) -> None:
    training = Training(scheduler=Scheduler(type=kind, warmup_steps=10, total_steps=100))
    found = leaves(config(zero_stage=3, precision=precision, training=training, loaded_by="transformers"))
    assert {key for key, value in found.items() if value == "auto"} == FILLED & set(found)


def test_deepspeed_gets_no_auto() -> None:
    assert '"auto"' not in written(zero_stage=3).files["ds_config.json"]


def test_the_trainer_is_told_what_the_file_leaves_to_it() -> None:
    said = elsewhere(loaded_by="transformers", checkpointing=Checkpointing("every", 2))
    assert said["per_device_train_batch_size"] == "--per_device_train_batch_size 2"
    assert said["gradient_accumulation_steps"] == "--gradient_accumulation_steps 4"
    assert said["bf16"] == "--bf16 true"
    assert said["max_grad_norm"] == "--max_grad_norm 1.0"
    assert said["gradient_checkpointing"] == "--gradient_checkpointing true"
    assert json.loads(said["gradient_checkpointing_kwargs"].partition("'")[2].rstrip("'")) == {
        "use_reentrant": False,
        "every_n_layers": 2,
    }
    assert said["lr_scheduler_type"] == "--lr_scheduler_type constant"  # the Trainer's own default falls


def test_own_code_is_told_too() -> None:
    said = elsewhere(
        checkpointing=Checkpointing("full"), training=Training(method=Method(type="lora"), attention="flash")
    )
    assert "gradient_checkpointing_enable" in said["checkpointing"]
    assert "4096" in said["sequence_length"]
    assert "flash_attention_2" in said["attention"]
    assert "r=16" in said["method"]
    assert said["world_size"] == "torchrun --standalone --nproc-per-node 8"
    assert "--nnodes 2" in elsewhere(world_size=16)["world_size"]


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_every_key_has_its_reason(stage: int) -> None:
    made = written(zero_stage=stage)
    found = leaves(json.loads(made.files["ds_config.json"]))
    assert {reason.key: reason.value for reason in made.reasons} == found
    assert all(reason.why for reason in made.reasons)


@pytest.mark.parametrize("path", [value for value in HOSTILE.values() if value])
def test_a_hostile_path_stays_a_string(path: str) -> None:
    found = config(zero_stage=3, offload_optimizer="nvme", on=hardware(nvme_path=path))
    assert found["zero_optimization"]["offload_optimizer"]["nvme_path"] == path
    assert found["zero_optimization"]["stage"] == 3


def test_the_text_is_the_same_each_time() -> None:
    texts = {written(zero_stage=3, folder=True).files["ds_config.json"] for _ in range(3)}
    assert len(texts) == 1
    assert texts.pop().endswith("}\n")


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1,}', "{} // no", "", '{"a": Infinity}'])
def test_what_is_no_json(text: str) -> None:
    assert no_json(text) is not None


def test_what_is_json() -> None:
    assert no_json('{"a": 1e-05}') is None
