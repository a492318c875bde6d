#!/bin/bash
set -euo pipefail
MODEL=${1:-mistralai/Mistral-7B-v0.1}
OUT=/checkpoints/mistral-sft
GPUS=8

torchrun --nproc_per_node $GPUS --master_port 29501 train.py \
    --model_name_or_path mistralai/Mistral-7B-v0.1 \
    --output_dir $OUT \
    --bf16 True \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 8 \
    --learning_rate 1e-5 \
    --weight_decay 0. \
    --warmup_ratio 0.03 \
    --lr_scheduler_type "cosine" \
    --num_train_epochs 3 \
    --model_max_length 2048 \
    --gradient_checkpointing True \
    --deepspeed ds_config.json
