"""Training arguments by name: whoever's they are, what they fix of a spec."""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from dsgen.errors import InputError
from dsgen.formats.hf.read import read
from dsgen.formats.hf.read.code import read_code
from dsgen.formats.hf.read.table import DEFAULTS


def said(**given: Any) -> dict[str, Any]:
    return {".".join(each.path): each.value for each in read(given).said}


@pytest.mark.parametrize(
    ("given", "path", "value"),
    [
        ({"model_name_or_path": "a/b"}, "model", "a/b"),
        ({"base_model": "a/b", "model_type": "x"}, "model", "a/b"),
        ({"per_device_train_batch_size": "4"}, "want.micro_batch", 4),
        ({"micro_batch_size": 2}, "want.micro_batch", 2),
        ({"gradient_accumulation_steps": "16"}, "want.accumulation", 16),
        ({"learning_rate": "2.0e-5"}, "training.optimizer.lr", 2e-5),
        ({"weight_decay": 0}, "training.optimizer.weight_decay", 0),
        ({"adam_beta2": 0.95}, "training.optimizer.betas", [0.9, 0.95]),
        ({"max_grad_norm": 0.3}, "training.gradient_clipping", 0.3),
        ({"max_grad_norm": -1}, "training.gradient_clipping", 0.0),
        ({"bf16": True}, "training.precision", "bf16"),
        ({"fp16": "true", "bf16": False}, "training.precision", "fp16"),
        ({"bf16": False, "fp16": False}, "training.precision", "fp32"),
        ({"cutoff_len": 2048}, "training.sequence_length", 2048),
        ({"sequence_len": 8192}, "training.sequence_length", 8192),
        ({"gradient_checkpointing": "True"}, "want.checkpointing", "full"),
        ({"gradient_checkpointing": "unsloth"}, "want.checkpointing", "full"),
        ({"gradient_checkpointing": False}, "want.checkpointing", "none"),
        (
            {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"every_n_layers": 2}},
            "want.checkpointing",
            {"every": 2},
        ),
        ({"activation_checkpointing": True}, "want.checkpointing", "full"),
        (
            {"activation_checkpointing": "true", "activation_checkpointing_kwargs": '{"every_n_layers": 3}'},
            "want.checkpointing",
            {"every": 3},
        ),
        ({"fsdp": True, "fsdp_config": {"version": 2, "reshard_after_forward": False}}, "want.zero_stage", 2),
        ({"fsdp_config": {"fsdp_activation_checkpointing": True}}, "want.checkpointing", "full"),
        ({"optim": "paged_adamw_8bit"}, "training.optimizer.type", "adamw8bit"),
        ({"optimizer": "adamw_torch_fused"}, "training.optimizer.type", "adamw"),
        ({"lr_scheduler_type": "SchedulerType.COSINE"}, "training.scheduler.type", "cosine"),
        ({"lr_scheduler": "constant_with_warmup"}, "training.scheduler.type", "constant"),
        ({"lr_scheduler_type": "linear", "max_steps": 500}, "training.scheduler.total_steps", 500),
        (
            {"lr_scheduler_type": "linear", "max_steps": 500, "warmup_ratio": 0.03},
            "training.scheduler.warmup_steps",
            15,
        ),
        ({"lr_scheduler_type": "cosine", "max_steps": 10, "warmup_steps": 0.25}, "training.scheduler.warmup_steps", 3),
        ({"attn_implementation": "flash_attention_2"}, "training.attention", "flash"),
        ({"flash_attention": True}, "training.attention", "flash"),
        ({"flash_attn": "fa2"}, "training.attention", "flash"),
        ({"flash_attn": "sdpa"}, "training.attention", "sdpa"),
        ({"finetuning_type": "full"}, "training.method.type", "full"),
        ({"adapter": "qlora"}, "training.method.type", "qlora"),
        ({"use_peft": True, "load_in_4bit": True}, "training.method.type", "qlora"),
        ({"finetuning_type": "lora", "lora_target": "q_proj,v_proj"}, "training.method.targets", ["q_proj", "v_proj"]),
        ({"adapter": "lora", "lora_target_linear": True}, "training.method.targets", "all-linear"),
        ({"adapter": "lora", "lora_r": 64}, "training.method.rank", 64),
        ({"deepspeed": "zero3_offload"}, "want.offload_optimizer", "cpu"),
        ({"fsdp": "full_shard auto_wrap offload"}, "want.offload_parameters", "cpu"),
        ({"fsdp": ["shard_grad_op", "auto_wrap"]}, "want.zero_stage", 2),
        ({"sequence_parallel_size": 4}, "want.ulysses", 4),
    ],
)
def test_a_name_is_read_whoever_uses_it(given: dict[str, Any], path: str, value: Any) -> None:
    assert said(**given)[path] == value


@pytest.mark.parametrize(
    "given",
    [
        {"bf16": "auto"},
        {"per_device_train_batch_size": "auto"},
        {"gradient_checkpointing": None},
        {"learning_rate": None},
        {"fsdp": ""},
        {"flash_attn": "auto"},
        {"max_steps": -1},
        {"deepspeed": "ds.json"},
        {"adapter": None},
    ],
)
def test_what_is_left_to_others_fixes_nothing(given: dict[str, Any]) -> None:
    assert said(**given) == {}


@pytest.mark.parametrize(
    "given",
    [
        {"per_device_train_batch_size": 0},
        {"learning_rate": "fast"},
        {"optim": "galore_adamw"},
        {"lr_scheduler_type": "polynomial"},
        {"lr_scheduler_type": "cosine", "warmup_ratio": 0.03},
        {"attn_implementation": "xformers"},
        {"adapter": "ia3"},
        {"gradient_checkpointing": "sometimes"},
    ],
)
def test_what_a_spec_can_not_say_is_named(given: dict[str, Any]) -> None:
    assert len(read(given).not_carried) == 1


def test_what_has_no_meaning_to_a_plan_survives() -> None:
    found = read({"output_dir": "x", "logging_steps": 5, "bf16": True})
    assert found.passthrough == {"output_dir": "x", "logging_steps": 5}


def test_defaults_are_those_of_transformers() -> None:
    """Read from its source, not run: the numbers that a call of TrainingArguments leaves out."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        pytest.skip("transformers is not installed")
    tree = ast.parse((Path(spec.origin).parent / "training_args.py").read_text(encoding="utf-8"))
    found = {
        node.target.id: _default(node.value)
        for klass in tree.body
        if isinstance(klass, ast.ClassDef) and klass.name == "TrainingArguments"
        for node in klass.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }
    names = [*DEFAULTS]
    names.remove("optim")  # computed there: the fused AdamW where torch has it
    found["gradient_checkpointing"] = found["gradient_checkpointing"] or False  # null is off
    assert {name: found[name] for name in names} == {name: DEFAULTS[name] for name in names}


def _default(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        node = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), node)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


CALL = "from transformers import TrainingArguments\n"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("TrainingArguments(learning_rate=1e-4)", "learning_rate", 1e-4),
        ("transformers.TrainingArguments(bf16=True)", "bf16", True),
        ("B = 4\nTrainingArguments(per_device_train_batch_size=B)", "per_device_train_batch_size", 4),
        ("B = 4\nTrainingArguments(gradient_accumulation_steps=64 // (B * 8))", "gradient_accumulation_steps", 2),
        ("A = {'max_steps': 7}\nTrainingArguments(**A)", "max_steps", 7),
        ("A = {'max_steps': 7}\nB = dict(A)\nB['x'] = f()\nTrainingArguments(**B)", "max_steps", 7),
        ("LoraConfig(r=8)\nSFTConfig(bf16=True)", "lora_r", 8),
        ("AutoModelForCausalLM.from_pretrained('a/b')\nSFTConfig()", "model_name_or_path", "a/b"),
    ],
)
def test_what_a_call_writes_out_is_read(text: str, key: str, value: Any) -> None:
    assert read_code(CALL + text, "train.py").arguments[key] == value


@pytest.mark.parametrize(
    "text",
    [
        "TrainingArguments(learning_rate=args.lr)",
        "LR = 1\nLR = 2\nTrainingArguments(learning_rate=LR)",
        "for LR in rates:\n    TrainingArguments(learning_rate=LR)",
        "TrainingArguments(learning_rate=10 ** 10 ** 10)",
        "TrainingArguments(learning_rate=1 / 0)",
        "A = {'learning_rate': 1}\nA['learning_rate'] = 2\nTrainingArguments(**A)",
        "TrainingArguments(**vars(options))",
    ],
)
def test_what_is_computed_stays_unknown(text: str) -> None:
    found = read_code(CALL + text, "train.py")
    assert "learning_rate" not in found.arguments or found.arguments["learning_rate"] == DEFAULTS["learning_rate"]
    if "vars" in text:
        # Whatever is passed may be any argument: nothing is taken for a default.
        assert found.arguments == {}


def test_code_without_a_call_is_refused() -> None:
    with pytest.raises(InputError, match="no training arguments are written out"):
        read_code("print('TrainingArguments(bf16=True)')", "train.py")
