from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

MODEL = "meta-llama/Llama-3.1-8B"
batch = 2

model = AutoModelForCausalLM.from_pretrained(MODEL, attn_implementation="flash_attention_2")
tokenizer = AutoTokenizer.from_pretrained(MODEL)
data = load_dataset("my/data", split="train")

config = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=batch,
    gradient_accumulation_steps=16 // 4,
    learning_rate=2e-4,
    lr_scheduler_type="constant_with_warmup",
    warmup_steps=50,
    max_steps=len(data) // 64,
    bf16=True,
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": False},
    max_length=4096,
    deepspeed={
        "zero_optimization": {"stage": 1},
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto",
    },
)
peft = LoraConfig(r=32, lora_alpha=64, lora_dropout=0.05, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
SFTTrainer(model=model, args=config, peft_config=peft, train_dataset=data).train()
