"""How a run was trained: method, kernels, loss, optimizer, as its columns say."""

import re

from dsgen.facts.gpus import find_gpu
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.spec.values import Attention, Code, Loss, Method, Optimizer, Training

_LIBRARIES = (
    ("litgpt", "litgpt"),
    ("lit-gpt", "litgpt"),
    ("torchtitan", "torchtitan"),
    ("fms-fsdp", "torchtitan"),
    ("torchtune", "torchtune"),
    ("megatron", "megatron"),
    ("llm-foundry", "foundry"),
)
"""What a framework's name begins with, and whose model it runs; transformers where none matches."""
_GROUPS = {
    "query": ("q_proj",),
    "key": ("k_proj",),
    "value": ("v_proj",),
    "projection": ("o_proj",),
    "qkvo": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "qkv": ("q_proj", "k_proj", "v_proj"),
    "c_attn": ("q_proj", "k_proj", "v_proj"),
    "q": ("q_proj",),
    "k": ("k_proj",),
    "v": ("v_proj",),
    "o": ("o_proj",),
    "attn": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
    "w1": ("up_proj",),
    "w2": ("gate_proj",),
    "c_proj": ("o_proj", "down_proj"),
    "head": (),
}
"""Layers by the words that projects use for them; Qwen's c_proj is the last matrix of both halves of a block."""
_VARIED = re.compile(r"ms-swift|truncated/filtered at max_length|variable length")
"""What says that samples are padded to the longest of their batch. (PEFT's method comparison does so, but empties the
cache: the mean of what it reserves is below the most.)"""
_SEQUENCE_PARALLEL = r"sequence[- ]parallel(=true| on| yes)"
_ALL = ("all", "all-linear")
_QUANTIZATIONS = {"nf4-dq": "nf4", "bnb4": "nf4"}
LORA_DROPOUT = {"litgpt": 0.05, "transformers": 0.05, "torchtune": 0.0}
"""Of their published LoRA configs; transformers stands for the examples of PEFT and the trainers built on it."""


def training_of(run: Run, gated: bool) -> Training:
    """Raises SkippedError for what the ledger has no formula for."""
    library = library_of(run)
    return Training(
        method=_method(run, library, gated),
        attention=_attention(run),
        loss=_loss(run),
        optimizer=_optimizer(run, library),
        compile=run.texts["compile"] == "yes",
        code=_code(run, library),
    )


def library_of(run: Run) -> str:
    """Whose model code runs."""
    framework = run.texts["framework"]
    return next((library for start, library in _LIBRARIES if framework.startswith(start)), "transformers")


def _attention(run: Run) -> Attention:
    name = run.texts["attention"]
    if "unfused" in name or name.startswith("eager"):
        return "eager"
    if name.startswith("flash") or "flash" in name or name.startswith("te auto"):
        return "flash"
    if "sdpa" in name:
        return "sdpa"
    raise SkippedError("the row does not name the attention kernel" if not name else f"attention {name!r} is unknown")


def _loss(run: Run) -> Loss:
    name = run.texts["loss_impl"]
    if name.startswith("fused_linear_ce"):
        return "fused_linear"
    if name.startswith("fused_ce"):
        return "fused"
    if name.startswith("chunked_ce"):
        return "chunked"
    if name == "seq-classification":
        return "classification"
    # Megatron has one loss, split over the vocabulary.
    if name.startswith(("full_ce", "vocab-parallel")) or (not name and library_of(run) == "megatron"):
        return "full"
    raise SkippedError("the row does not say how the loss is taken" if not name else f"loss {name!r} has no formula")


def _optimizer(run: Run, library: str) -> Optimizer:
    name = run.texts["optimizer"]
    if not name:
        raise SkippedError("the row does not name the optimizer")
    if name.startswith("adafactor"):
        return Optimizer(type="adafactor")
    if name.startswith("adam8bit"):
        return Optimizer(type="adam8bit")
    if not name.startswith(("adam", "fusedadam", "cpu_adam", "deepspeedcpuadam", "decoupled_adamw")):
        raise SkippedError(f"optimizer {name!r} has no row in optimizers.csv")
    if "in_backward" in name:
        return Optimizer(step="in_backward")
    # torchtune's and torchtitan's configs step fused, decoupled_adamw is written in place; torch's own choice is
    # foreach.
    in_place = "fused" in name or name.startswith("decoupled") or library in ("torchtune", "torchtitan")
    # transformers' own AdamW goes over one parameter after the other.
    in_place = in_place or name == "adamw_hf"
    return Optimizer(step="fused" if in_place else "foreach")


def _method(run: Run, library: str, gated: bool) -> Method:
    peft = run.texts["peft"]
    if peft in ("none", ""):
        return Method()
    found = re.fullmatch(r"lora r(\d+) (?:default\s*\(?)?([^()]*)\)?(?: \(all linear\))?", peft)
    if found is None:
        raise SkippedError(f"adapters {peft!r} have no formula, or lack rank or layers")
    rank, layers = int(found[1]), found[2].strip()
    targets: list[str] = []
    if layers in _ALL:
        targets = ["all-linear"]
    else:
        for word in re.split(r"[+,]", layers):
            if word.strip() not in _GROUPS:
                raise SkippedError(f"adapter layers {word!r} are unknown")
            targets += [name for name in _GROUPS[word.strip()] if gated or name != "gate_proj"]
    quant = run.texts["quant"]
    return Method(
        type="lora",
        rank=rank,
        targets=targets[0] if targets == ["all-linear"] else tuple(dict.fromkeys(targets)),
        dropout=LORA_DROPOUT.get(library, 0.0),
        quantization=None if quant in ("none", "") else _quantization(quant, library),
    )


def _quantization(quant: str, library: str) -> str:
    from dsgen.facts.quantizations import quantizations

    # litgpt tells nf4 and nf4-dq apart; elsewhere nf4 is what bitsandbytes' layer does by itself, with compressed
    # scales.
    name = "nf4-plain" if library == "litgpt" and quant == "nf4" else _QUANTIZATIONS.get(quant, quant)
    if name not in quantizations():
        raise SkippedError(f"quantization {quant!r} has no row in quantizations.csv")
    return name


def _code(run: Run, library: str) -> Code:
    notes, loss = run.texts["notes"], run.texts["loss_impl"]
    fused = set[str]()
    # What torch.compile makes of a norm keeps what a fused kernel keeps.
    if library == "megatron" or "fused kernels" in notes or run.texts["compile"] == "yes":
        fused.add("norm")
    if library == "torchtitan" and run.texts["compile"] == "yes" and _since(run, _COMPILED_LOSS):
        fused.add("loss")
    if "liger" in loss and "fused kernels" not in notes:
        fused |= {"norm", "mlp"}
    if library == "megatron" and loss.endswith("fused"):
        fused.add("loss")
    if "tiled_mlp" in loss:
        fused.add("tiled_mlp")
    dropout = re.search(r"(?:hidden-)?dropout[= ](?:default )?(\d+(?:\.\d+)?)", notes)
    explicit = re.search(r"hidden-dropout=(\d+(?:\.\d+)?)", notes) or dropout
    return Code(
        library=library,  # type: ignore[arg-type]  # the names stand in _LIBRARIES
        fused=frozenset(fused),
        weights_in_compute_type=_narrow(run),
        keeps_logits=_keeps_logits(run),
        autocast="autocast flag on" in notes,
        # llm-foundry's MPT takes the loss of what its head gives (llmfoundry/models/mpt/modeling_mpt.py).
        loss_in_fp32=not (library == "foundry" or (library == "transformers" and _raw_logits(run))),
        reentrant=library == "transformers" and run.texts["act_ckpt"].startswith("full"),
        # torchtitan's plan splits the sequence wherever it splits the matrices (models/llama3/parallelize.py).
        # So do the recipes of Megatron-Bridge (recipes/llama/llama3.py).
        sequence_parallel=library == "torchtitan"
        or run.texts["framework"].startswith("megatron-bridge")
        or re.search(_SEQUENCE_PARALLEL, notes) is not None,
        last_rank="the last rank" in notes,
        dropout=float(explicit[1]) > 0 if explicit else None,
        lengths_vary=_VARIED.search(f"{run.texts['framework']} {notes}") is not None,
        # torchtitan's run_train.sh and torchtune's recipes ask for them (meta-pytorch/torchtune#1309).
        expandable_segments=library in ("torchtitan", "torchtune") and not _early_titan(run),
        embedding_apart=library == "torchtitan" and _since(run, _EMBEDDING_APART),
    )


def _keeps_logits(run: Run) -> bool:
    """Loops that hold the model's output until the backward pass is over: the Trainer's where logits stay as they are,
    torchtitan's at first, fsdp_qlora's (train.py: output = None comes after the step)."""
    framework = run.texts["framework"]
    trainer = _raw_logits(run) and framework.startswith("hf trainer")
    return trainer or framework.startswith("fsdp_qlora") or _early_titan(run)


def _raw_logits(run: Run) -> bool:
    """Models whose class took the loss of the logits as they were, until transformers 4.46
    (models/gpt2/modeling_gpt2.py, models/gpt_bigcode/modeling_gpt_bigcode.py)."""
    return run.texts["model"].lower().startswith(("gpt2", "santacoder")) or "bigcode" in run.texts["model"].lower()


def _narrow(run: Run) -> bool:
    """Trained weights and their states are 16 bit: adapters by the type of their states, else the master type."""
    if run.texts["peft"] not in ("none", ""):
        return "bf16" in run.texts["optim_state_dtype"] or "fp16" in run.texts["optim_state_dtype"]
    return run.texts["master_dtype"] in ("bf16", "fp16") and run.texts["compute_dtype"] != "fp32"


def _early_titan(run: Run) -> bool:
    """A run of torchtitan before its loop let go of the logits (pytorch/torchtitan#391, June 2024)."""
    pull = re.search(r"pytorch/torchtitan/pull/(\d+)", run.reference)
    return pull is not None and int(pull[1]) < _LOGITS_FREED


_LOGITS_FREED = 391
_COMPILED_LOSS = 202504
"""Year and month from which torchtitan compiles its loss with the model (pytorch/torchtitan#1033)."""
_EMBEDDING_APART = 202508
"""From which it shards the embedding and the output head as units of their own (pytorch/torchtitan#1094)."""


def _since(run: Run, month: int) -> bool:
    """Whether a run is at least that young: by the date in its reference, or by a Blackwell card, for which torchtitan
    had its own recipes since the summer of 2025."""
    dated = re.search(r"20[0-9]{2}[01][0-9](?![0-9])", run.reference)
    if dated:
        return int(dated[0]) >= month
    gpu = find_gpu(run.texts["gpu"])
    return gpu is not None and (gpu.cuda or 0) >= 10
