"""Training arguments by name, whatever file they stand in, in a spec's words."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsgen.formats.accelerate.read import read_fsdp
from dsgen.formats.hf.read import table
from dsgen.formats.hf.read.optimization import optimizer, scheduler
from dsgen.formats.hf.read.scalars import count, is_off, is_on, number
from dsgen.reading import LeftOut, Said, SpecPath

Arguments = Mapping[str, Any]
Answer = Said | LeftOut


@dataclass(frozen=True, slots=True)
class Named:
    """A file that arguments name, or a config that stands among them."""

    key: str
    value: Any


def answers(given: Arguments) -> Iterator[Answer]:
    """What the arguments fix; what they leave to others ("auto", null) is no answer."""
    yield from _model(given)
    yield from _quantities(given)
    yield from _precision(given)
    yield from _checkpointing(given)
    yield from optimizer(given)
    yield from scheduler(given)
    yield from _attention(given)
    yield from _method(given)
    yield from _sharding(given)
    for key, path in (("torch_compile", ("training", "compile")), ("use_liger_kernel", ("training", "loss"))):
        if is_on(given.get(key)):
            yield Said(path, True if key == "torch_compile" else "fused_linear", (key,))


def known_keys() -> frozenset[str]:
    """Names of arguments that this reads; a mapping with some of them holds training arguments."""
    single = {
        "bf16",
        "fp16",
        "gradient_checkpointing",
        "activation_checkpointing",
        "max_steps",
        "num_train_epochs",
        "warmup_steps",
        "warmup_ratio",
    }
    names = (*table.OPTIMIZER, *table.SCHEDULER, *table.TARGETS, *table.METHOD, *table.ATTENTION, *table.MODEL)
    return frozenset({*table.COUNTS, *table.NUMBERS, *names, *single, "deepspeed", "fsdp"})


def _model(given: Arguments) -> Iterator[Answer]:
    for key in table.MODEL:
        value = given.get(key)
        if isinstance(value, str) and value:
            yield Said(("model",), value, (key,))
            return


def _quantities(given: Arguments) -> Iterator[Answer]:
    said: set[SpecPath] = set()
    for names, parse in ((table.COUNTS, count), (table.NUMBERS, number)):
        for key, path in names.items():
            value = given.get(key)
            if value in (None, "auto", "") or path in said:
                continue
            try:
                found = parse(value)
            except ValueError as error:
                yield LeftOut(key, value, str(error))
                continue
            if key == "max_grad_norm" and found < 0:
                found = 0.0
            said.add(path)
            yield Said(path, found, (key,))
    betas = [given.get(f"adam_beta{at}") for at in (1, 2)]
    if any(beta is not None for beta in betas):
        try:
            pair = [
                number(default if beta is None else beta) for beta, default in zip(betas, (0.9, 0.999), strict=True)
            ]
            yield Said(
                ("training", "optimizer", "betas"), pair, ("adam_beta1" if betas[0] is not None else "adam_beta2",)
            )
        except ValueError as error:
            yield LeftOut("adam_beta1", betas, str(error))


def _precision(given: Arguments) -> Iterator[Answer]:
    named = given.get("mixed_precision")
    for name in ("bf16", "fp16"):
        if is_on(given.get(name)) or named == name:
            yield Said(("training", "precision"), name, (name if is_on(given.get(name)) else "mixed_precision",))
            return
    if is_off(given.get("bf16")) and is_off(given.get("fp16")):
        yield Said(("training", "precision"), "fp32", ("bf16",))


def _checkpointing(given: Arguments) -> Iterator[Answer]:
    """``activation_checkpointing``, which was called ``gradient_checkpointing`` before transformers 5."""
    for key in ("activation_checkpointing", "gradient_checkpointing"):
        value, kwargs = given.get(key), _mapping(given.get(f"{key}_kwargs"))
        if is_off(value):
            yield Said(("want", "checkpointing"), "none", (key,))
        elif is_on(value) or value in ("unsloth", "offload"):
            every = kwargs.get("every_n_layers", 1)
            several = isinstance(every, int) and every > 1
            yield Said(("want", "checkpointing"), {"every": every} if several else "full", (key,))
            if value == "offload" or is_on(kwargs.get("offload")):
                yield LeftOut(key, value, "offload of activations is not in the spec that this makes")
        elif value is not None:
            yield LeftOut(key, value, "is neither true nor false")


def _mapping(value: Any) -> Mapping[str, Any]:
    """Keyword arguments; on a command line they are JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _attention(given: Arguments) -> Iterator[Answer]:
    for key in table.ATTENTION:
        value = given.get(key)
        if value is None or is_off(value) or value == "auto" or isinstance(value, list | dict):
            continue
        name = value.lower() if isinstance(value, str) else value
        if name in table.KERNELS:
            yield Said(("training", "attention"), table.KERNELS[name], (key,))
        else:
            yield LeftOut(key, value, "a spec has eager, sdpa and flash attention")
        return


def _method(given: Arguments) -> Iterator[Answer]:
    kind: str | None = None
    for key in table.METHOD:
        value = given.get(key)
        if value is None or is_off(value) or isinstance(value, list | dict):
            continue
        name = value.lower() if isinstance(value, str) else value
        if name not in table.METHODS:
            if key in ("finetuning_type", "adapter"):
                yield LeftOut(key, value, "a spec trains all weights or low-rank adapters")
            continue
        kind = table.METHODS[name]
        four = is_on(given.get("load_in_4bit")) or str(given.get("quantization_bit")) == "4"
        kind = "qlora" if kind == "lora" and four else kind
        yield Said(("training", "method", "type"), kind, (key,))
        break
    if kind in (None, "full"):
        return
    for key in table.TARGETS:
        value = given.get(key)
        if value:
            yield Said(("training", "method", "targets"), _targets(value), (key,))
            return
    if is_on(given.get("lora_target_linear")):
        yield Said(("training", "method", "targets"), "all-linear", ("lora_target_linear",))


def _targets(value: Any) -> Any:
    if isinstance(value, str):
        names = [name.strip() for name in value.split(",")]
        return "all-linear" if names[0] in ("all", "all-linear") else names
    return [str(name) for name in value] if isinstance(value, list | tuple) else "all-linear"


_BUILTIN = re.compile(r"zero(?P<stage>[0-3])(?P<offload>_offload)?")
_FSDP_STAGES = {"full_shard": 3, "shard_grad_op": 2, "no_shard": 0, "hybrid_shard": 3, "hybrid_shard_zero2": 2}


def _sharding(given: Arguments) -> Iterator[Answer]:
    """FSDP by the Trainer's arguments; a deepspeed argument names a file, which is read by itself."""
    builtin = _BUILTIN.fullmatch(str(given.get("deepspeed")))
    if builtin:
        yield Said(("want", "zero_stage"), int(builtin["stage"]), ("deepspeed",), "a config that ms-swift brings along")
        if builtin["offload"]:
            yield Said(("want", "offload_optimizer"), "cpu", ("deepspeed",))
        return
    fsdp = given.get("fsdp")
    words = fsdp.split() if isinstance(fsdp, str) else [str(word) for word in fsdp] if isinstance(fsdp, list) else []
    for word in words:
        if word in _FSDP_STAGES:
            yield Said(("want", "zero_stage"), _FSDP_STAGES[word], ("fsdp",))
            if "offload" in words:
                yield Said(("want", "offload_optimizer"), "cpu", ("fsdp",))
                yield Said(("want", "offload_parameters"), "cpu", ("fsdp",))
            yield Said(("target", "format"), "fsdp2", ("fsdp",), "FSDP, which dsgen writes as FSDP2")
            break
    # The words of fsdp count over the section, as in transformers.
    if words or is_on(fsdp) or (given.get("fsdp") is None and not given.get("deepspeed")):
        for each in read_fsdp(_mapping(given.get("fsdp_config"))):
            yield Said(each.path, each.value, ("fsdp_config",), each.why)


def named_config(given: Arguments) -> Named | None:
    """The DeepSpeed config that the arguments name, or hold; None where there is none."""
    for key in ("deepspeed", "deepspeed_config", "deepspeed_config_file", "ds_config"):
        value = given.get(key)
        if value and isinstance(value, str | Mapping) and not _BUILTIN.fullmatch(str(value)):
            return Named(key, value)
    return None
