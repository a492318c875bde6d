"""Names of training arguments, by transformers and by frameworks that hand them on to it, in a spec's words.

Read in transformers/training_args.py, trl/trainer/sft_config.py, peft/tuners/lora/config.py, LLaMA-Factory's
hparams, axolotl's schemas and ms-swift's arguments.
"""

from collections.abc import Mapping

from dsgen.reading import SpecPath

MODEL = ("model_name_or_path", "base_model", "model_id", "pretrained_model_name_or_path", "model")
LENGTH = ("max_seq_length", "cutoff_len", "sequence_len", "max_length", "model_max_length", "max_seq_len", "block_size")

COUNTS: Mapping[str, SpecPath] = {
    "per_device_train_batch_size": ("want", "micro_batch"),
    "per_gpu_train_batch_size": ("want", "micro_batch"),
    "micro_batch_size": ("want", "micro_batch"),
    "gradient_accumulation_steps": ("want", "accumulation"),
    "lora_rank": ("training", "method", "rank"),
    "lora_r": ("training", "method", "rank"),
    # Of accelerate's ParallelismConfig, ms-swift and axolotl.
    "sp_size": ("want", "ulysses"),
    "sequence_parallel_size": ("want", "ulysses"),
    "tp_size": ("want", "tensor_parallel"),
    "tensor_parallel_size": ("want", "tensor_parallel"),
    "cp_size": ("want", "context_parallel"),
    "context_parallel_size": ("want", "context_parallel"),
    **dict.fromkeys(LENGTH, ("training", "sequence_length")),
}
NUMBERS: Mapping[str, SpecPath] = {
    "learning_rate": ("training", "optimizer", "lr"),
    "weight_decay": ("training", "optimizer", "weight_decay"),
    "adam_epsilon": ("training", "optimizer", "eps"),
    "max_grad_norm": ("training", "gradient_clipping"),
    "lora_alpha": ("training", "method", "alpha"),
    "lora_dropout": ("training", "method", "dropout"),
}
OPTIMIZER = ("optim", "optimizer")
SCHEDULER = ("lr_scheduler_type", "lr_scheduler")
TARGETS = ("target_modules", "lora_target", "lora_target_modules", "lora_modules_to_target")
METHOD = ("finetuning_type", "adapter", "tuner_type", "train_type", "use_peft", "use_lora", "tuner_backend")
ATTENTION = ("attn_implementation", "attn_impl", "flash_attn", "flash_attention", "use_flash_attn")

OPTIMIZERS: Mapping[str, str] = {
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adamw_hf": "adamw",
    "adamw_apex_fused": "adamw",
    "adamw": "adamw",
    "adam": "adam",
    "sgd": "sgd",
    "adamw_8bit": "adamw8bit",
    "adamw_bnb_8bit": "adamw8bit",
    "paged_adamw_8bit": "adamw8bit",
    "adafactor": "adafactor",
    "adagrad": "adagrad",
    "lion": "lion",
    "lion_32bit": "lion",
    "muon": "muon",
}
SCHEDULERS: Mapping[str, str] = {
    "linear": "linear",
    "cosine": "cosine",
    "constant": "constant",
    "constant_with_warmup": "constant",
}
KERNELS: Mapping[object, str] = {
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "flash_attn": "flash",
    "fa2": "flash",
    "flash": "flash",
    True: "flash",
    "true": "flash",
    "sdpa": "sdpa",
    "eager": "eager",
    "disabled": "eager",
}
METHODS: Mapping[object, str] = {"full": "full", "lora": "lora", "qlora": "qlora", True: "lora", "true": "lora"}

DEFAULTS: Mapping[str, object] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "learning_rate": 5e-5,
    "weight_decay": 0.0,
    "adam_epsilon": 1e-8,
    "max_grad_norm": 1.0,
    "lr_scheduler_type": "linear",
    "gradient_checkpointing": False,
    "optim": "adamw_torch_fused",
}
"""transformers/training_args.py: TrainingArguments, where a call leaves them out. Others (TRL, LLaMA-Factory) have
defaults of their own."""
