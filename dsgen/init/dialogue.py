"""The dialogue: a few questions with defaults, answered by a person or a pipe."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from dsgen.errors import InputError, Problem, ProblemsError
from dsgen.facts.gpus import find_gpu, nearest_gpus
from dsgen.facts.models import find_model, nearest_models
from dsgen.facts.nodes import find_node, nearest_nodes
from dsgen.init.values import Findings, Given
from dsgen.reading import SpecPath
from dsgen.shapes.resolve import DEFAULT_SEQUENCE_LENGTH, shapes_of
from dsgen.spec.read import spec_from_mapping
from dsgen.spec.source import working_folder
from dsgen.units import parse_count, parse_integer

Answers = dict[SpecPath, Any]
_OPEN = "decided by dsgen"


@dataclass(frozen=True, slots=True)
class Question:
    """One question; its answer becomes a line of the spec."""

    path: SpecPath
    text: str
    default: Callable[[Mapping[SpecPath, Any]], str]
    """Given what is answered already; empty: left open."""
    read: Callable[[str], Mapping[SpecPath, Any]]
    """Raises ValueError with what to write instead."""
    asked: Callable[[Mapping[SpecPath, Any]], bool] = lambda _known: True


def ask(
    known: Mapping[SpecPath, Any],
    stream: TextIO,
    say: Callable[[str], None],
    defaults: Mapping[SpecPath, str] | None = None,
) -> Findings:
    """Asks what is not known yet, one answer a line; an empty line takes the default.

    defaults: better ones than ours, such as the GPUs that are here.

    At a terminal a wrong answer is asked for again; from a pipe it is refused, since the next line answers another
    question. Raises InputError where the answers end too soon.
    """
    answers: Answers = {}
    for question in QUESTIONS:
        so_far = {**known, **answers}
        if question.path in so_far or not question.asked(so_far):
            continue
        default = (defaults or {}).get(question.path) or question.default(so_far)
        answers |= _answer(question, default, stream, say)
    return Findings(given=tuple(Given(path, value) for path, value in answers.items() if value is not None))


def _answer(question: Question, default: str, stream: TextIO, say: Callable[[str], None]) -> Mapping[SpecPath, Any]:
    while True:
        say(f"{question.text} [{default or _OPEN}]: ")
        try:
            line = stream.readline()
        except UnicodeDecodeError:
            # A locale decides whether such bytes come as stand-ins, which are refused below, or not at all.
            raise InputError(Problem(f"{question.text}: the answer is no UTF-8", help="nothing was written")) from None
        if not line:
            raise InputError(Problem(f"the answers end at '{question.text}'; nothing was written"))
        if not stream.isatty():
            say("\n")  # what a terminal echoes
        text = line.strip() or default
        if not text:
            return {question.path: None}
        try:
            return question.read(text)
        except ValueError as error:
            if not stream.isatty():
                raise InputError(Problem(f"{question.text}: {error}", help="nothing was written")) from None
            say(f"  {error}\n")


def _fixed(text: str) -> Callable[[Mapping[SpecPath, Any]], str]:
    return lambda _known: text


def _model(text: str) -> Mapping[SpecPath, Any]:
    return {("model",): checked_model(text)}


def checked_model(text: str) -> Any:
    """A preset's name, a folder with a config.json, or a size such as 7B.

    Raises ValueError with the nearest names.
    """
    if find_model(text) is not None:
        return text
    try:
        if text[:1].isdigit():
            parse_count(text)
            return {"parameters": text}
        spec = spec_from_mapping({"model": text, "hardware": {"gpu": "placeholder"}}, working_folder())
        if spec.model.path is not None:
            shapes_of(spec)
            return text
    except ProblemsError as error:
        raise ValueError("; ".join(problem.message for problem in error.problems)) from None
    near = nearest_models(text)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise ValueError(
        f"no model is called {text!r}; {hint}give a preset, a folder with config.json, or a size such as 7B"
    )


def _machine(text: str) -> Mapping[SpecPath, Any]:
    if find_gpu(text) is not None:
        return {("hardware", "gpu"): text}
    if find_node(text) is not None:
        return {("hardware", "node"): text, ("hardware", "gpu"): None}
    near = [*nearest_gpus(text), *nearest_nodes(text)]
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise ValueError(f"no GPU or node is called {text!r}; {hint}dsgen show gpus and dsgen show nodes list them")


def _whole(path: SpecPath, most: int = 2**31 - 1) -> Callable[[str], Mapping[SpecPath, Any]]:
    def read(text: str) -> Mapping[SpecPath, Any]:
        try:
            count = parse_integer(text)
        except ValueError:
            raise ValueError(f"{text!r} is no whole number") from None
        if not 1 <= count <= most:
            raise ValueError(f"{count} is not between 1 and {most}")
        return {path: count}

    return read


def _length(known: Mapping[SpecPath, Any]) -> str:
    name = known.get(("model",))
    model = find_model(name) if isinstance(name, str) else None
    return str(min(DEFAULT_SEQUENCE_LENGTH, model.max_positions if model else DEFAULT_SEQUENCE_LENGTH))


def _method(text: str) -> Mapping[SpecPath, Any]:
    if text.lower() not in ("full", "lora", "qlora"):
        raise ValueError(f"{text!r} is not full, lora or qlora")
    return {("training", "method", "type"): text.lower()}


def _has_no_node(known: Mapping[SpecPath, Any]) -> bool:
    return ("hardware", "node") not in known


QUESTIONS = (
    Question(
        ("model",),
        "Model (a preset, a folder with config.json, or a size such as 7B)",
        _fixed("llama-3.1-8b"),
        _model,
    ),
    Question(("hardware", "gpu"), "GPU or node", _fixed("h100-80gb-sxm"), _machine, _has_no_node),
    Question(
        ("hardware", "gpus_per_node"),
        "GPUs per node",
        _fixed("8"),
        _whole(("hardware", "gpus_per_node"), 1024),
        _has_no_node,
    ),
    Question(("hardware", "nodes"), "Nodes", _fixed("1"), _whole(("hardware", "nodes"), 100_000)),
    Question(("training", "sequence_length"), "Tokens per sequence", _length, _whole(("training", "sequence_length"))),
    Question(
        ("training", "global_batch"),
        "Sequences per optimizer step, all GPUs together",
        _fixed(""),
        _whole(("training", "global_batch")),
    ),
    Question(("training", "method", "type"), "Method (full, lora or qlora)", _fixed("full"), _method),
)
