"""Trains mistral-7b-v0.3 with the Hugging Face Trainer and DeepSpeed, ZeRO stage 3, on 8 GPUs.

Usage:
    launch/torchrun.sh                                  the whole training
    launch/torchrun.sh --model FOLDER                   from published weights on
    launch/torchrun.sh --resume                         from the last checkpoint on
    NPROC=2 launch/torchrun.sh --size tiny --steps 3    on any machine, in seconds
"""

import argparse
import json
from pathlib import Path
from typing import Any

import deepspeed
import torch
from data import dataset
from tiny import SEQUENCE_LENGTH as TINY_LENGTH
from tiny import tiny_config
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments

HERE = Path(__file__).resolve().parent
SEQUENCE_LENGTH = 4096
ATTENTION = "flash_attention_2"
ON_CPU = "eager"  # the flash kernels need a GPU

# What belongs to ds_config.json: it says "auto" where one of these fills it.
PLANNED: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "bf16": True,
    "max_grad_norm": 1.0,
    "learning_rate": 1e-05,
    "weight_decay": 0.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-08,
    "warmup_steps": 100,
    "max_steps": 3000,
    "gradient_checkpointing": True,
    "gradient_checkpointing_kwargs": {"use_reentrant": False},
}

FULL: dict[str, Any] = {
    "vocab_size": 32768,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "sliding_window": None,
}
TINY: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
    "sliding_window": None,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--model", help="folder or Hub id of weights to start from")
    parser.add_argument("--steps", type=int, default=3000, help="optimizer steps")
    parser.add_argument("--data", type=Path, help="token ids, a flat binary file")
    parser.add_argument("--output", type=Path, default=HERE / "checkpoints")
    parser.add_argument("--resume", action="store_true", help="from the last save on")
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS")
    parser.add_argument("--log-every", type=int, default=1, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def collate(sequences: list[Tensor]) -> dict[str, Tensor]:
    """The model shifts the labels itself."""
    tokens = torch.stack(sequences)
    return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    options = arguments()
    tiny = options.size == "tiny"
    on_gpu = torch.cuda.is_available()
    ds_config = json.loads((HERE / "ds_config.json").read_text("utf-8"))
    planned = dict(PLANNED)
    if tiny:
        ds_config = tiny_config(ds_config, on_gpu)
    planned["max_steps"] = options.steps

    # Before the model: at ZeRO stage 3 these arguments make it sharded from the start.
    training = TrainingArguments(
        output_dir=str(options.output),
        deepspeed=ds_config,
        use_cpu=not on_gpu,
        seed=options.seed,
        save_steps=options.save_every,
        logging_steps=options.log_every,
        dataloader_num_workers=2,
        dataloader_pin_memory=on_gpu,
        dataloader_drop_last=True,
        remove_unused_columns=False,
        report_to="none",
        **planned,
    )
    # On a CPU the arguments start torch's processes without telling DeepSpeed.
    deepspeed.init_distributed()
    if options.model:
        model = AutoModelForCausalLM.from_pretrained(
            options.model, attn_implementation=ATTENTION
        )
    else:
        sizes = TINY if tiny else FULL
        config = AutoConfig.for_model("mistral", **sizes, use_cache=False)
        attention = ATTENTION if on_gpu else ON_CPU
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)

    length = TINY_LENGTH if tiny else SEQUENCE_LENGTH
    trainer = Trainer(
        model=model,
        args=training,
        train_dataset=dataset(options.data, length, model.config.vocab_size),
        data_collator=collate,
    )
    trainer.train(resume_from_checkpoint=options.resume)
    trainer.save_model()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
