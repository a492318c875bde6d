"""What a plan asks of the code that trains, and neither a config nor a script that dsgen writes does."""

from collections.abc import Callable, Iterator

from dsgen.errors import RefusedError
from dsgen.facts.quantizations import quantizations
from dsgen.formats.values import NotCarried
from dsgen.shapes.tower import has_tower
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Resident, Training
from dsgen.units import format_bytes

LIGER = (
    '{"fused_linear_cross_entropy": true, "cross_entropy": false, "rms_norm": false, "swiglu": false, "rope": false}'
)
"""transformers' liger_kernel_config for the loss alone, which is what the ledger counts."""


def unscripted(training: Training, compiled: str, *, by_trainer: bool = False) -> Iterator[NotCarried]:
    """In the order in which a person would meet them; ``compiled``: how this format's code compiles a model."""
    for key, is_asked, said in _ASKED:
        if is_asked(training):
            yield NotCarried(key, *said(training, compiled, by_trainer))
    for resident in training.residents:
        yield NotCarried("residents", resident.what, *_resident(resident))


def refuse_script(training: Training, shapes: Shapes) -> None:
    """Raises RefusedError where the training script would not do what was counted."""
    missing = not_scripted(training, shapes)
    if missing:
        raise RefusedError.at(
            f"the training script that dsgen writes does not do this yet: {', '.join(missing)}",
            help="write the file alone (-o FILE): build then names what to add to a script of your own",
        )


def not_scripted(training: Training, shapes: Shapes) -> list[str]:
    """What was counted and no code that dsgen writes does."""
    tower = ["a vision tower beside the decoder"] if has_tower(shapes) else []
    return [key for key, is_asked, _ in _ASKED if is_asked(training)] + tower


def _method(training: Training, _compiled: str, _by_trainer: bool) -> tuple[object, str, str]:
    name = training.method.quantization or ""
    if name.startswith("gptq"):
        pass_as = f"a checkpoint that GPTQ has quantised to {quantizations()[name].bits} bits, loaded before peft"
    else:
        double = "True" if name == "nf4" else "False"
        pass_as = (
            'from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", '
            f"bnb_4bit_use_double_quant={double}, bnb_4bit_compute_dtype=...))"
        )
    return name, pass_as, "how weights are stored is the model's to say"


def _freeze(training: Training, _compiled: str, _by_trainer: bool) -> tuple[object, str, str]:
    return (
        list(training.freeze),
        "parameter.requires_grad_(False) for each that a pattern names, before the optimizer is made",
        "which parameters are trained is the model's to say",
    )


def _loss(training: Training, _compiled: str, by_trainer: bool) -> tuple[object, str, str]:
    if training.loss == "chunked":
        pass_as = (
            "apply the output head and the cross-entropy to one of 8 parts of the tokens at a time, each recomputed"
        )
    elif by_trainer:
        pass_as = f"--use_liger_kernel true --liger_kernel_config '{LIGER}'"
    else:
        pass_as = (
            "liger_kernel's LigerFusedLinearCrossEntropyLoss()(head.weight, hidden, labels) in place of the logits"
        )
    return training.loss, pass_as, "the loss is the model's; the ledger counts no whole logits"


def _compile(_training: Training, compiled: str, by_trainer: bool) -> tuple[object, str, str]:
    return True, "--torch_compile true" if by_trainer else compiled, "a model is compiled by the code that makes it"


_Said = Callable[[Training, str, bool], tuple[object, str, str]]
_ASKED: tuple[tuple[str, Callable[[Training], bool], _Said], ...] = (
    ("quantization", lambda training: training.method.quantization is not None, _method),
    ("freeze", lambda training: bool(training.freeze), _freeze),
    ("loss", lambda training: training.loss != "full", _loss),
    ("compile", lambda training: training.compile, _compile),
)


def _resident(resident: Resident) -> tuple[str, str]:
    if resident.model is not None:
        return (
            "load it in the compute type, for reading only; at ZeRO stage 3 with an engine of its own that shards it",
            "the ledger counts its weights on every card, or its shard",
        )
    limit = f"{resident.share:.0%}" if resident.share else format_bytes(resident.reserve)
    return (
        f"start it with a limit of {limit} of each card (vLLM: gpu_memory_utilization)",
        "the ledger leaves it that much",
    )
