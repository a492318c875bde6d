"""``dsgen init``: a first spec.yaml, from answers, from this machine, or from files that exist."""

import argparse
import io
import os
import sys
from pathlib import Path
from shutil import which
from typing import Any, TextIO

from dsgen.errors import InputError, Place, Problem, printable
from dsgen.init.compose import compose
from dsgen.init.values import Findings, Given, Unknown, merged
from dsgen.init.write import refuse_existing, save
from dsgen.reading import SpecPath
from dsgen.signals import end_on_signals

_HINTS = (
    Unknown(("hardware", "host_memory"), "1TiB", "memory of a node: without it host memory is not checked", hint=True),
    Unknown(("training", "attention"), "flash", "eager, sdpa or flash; left out, sdpa", hint=True),
    Unknown(
        ("want", "zero_stage"), "3", "0 to 3; anything under want is obeyed, or refused with the reason", hint=True
    ),
    Unknown(("want", "checkpointing"), "full", "none, full, selective or {every: 2}", hint=True),
    Unknown(("target", "format"), "deepspeed", "or fsdp2", hint=True),
    Unknown(
        ("target", "loaded_by"), "transformers", "who reads the config: deepspeed itself, or the Trainer", hint=True
    ),
)
"""What people ask next, for those who answered questions."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this command."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="spec.yaml",
        help="where it is written (default: spec.yaml; - prints it)",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument(
        "--from",
        dest="files",
        nargs="+",
        metavar="FILE",
        default=(),
        help="a ds_config, training arguments (YAML, JSON, Python), accelerate's config, a launch script, or a launch "
        "line in quotes",
    )
    parser.add_argument("--here", action="store_true", help="take the hardware of this machine")
    known = parser.add_argument_group("answers beforehand")
    known.add_argument("--model", metavar="MODEL", help="a preset, a folder with config.json, or a size (7B)")
    known.add_argument("--gpu", metavar="NAME", help="a GPU or a node (dsgen show gpus, dsgen show nodes)")
    known.add_argument("--gpus-per-node", metavar="N", help="GPUs of one node")
    known.add_argument("--nodes", metavar="N", help="number of nodes")
    known.add_argument("--sequence-length", metavar="N", help="tokens per sequence")
    known.add_argument("--global-batch", metavar="N", help="sequences per optimizer step")
    known.add_argument("--method", metavar="METHOD", help="full, lora or qlora")


def run(args: argparse.Namespace) -> int:
    """Asks or reads, writes once at the end, and says what is still unknown."""
    path = None if args.output == "-" else Path(args.output)
    if path is not None:
        refuse_existing(path, force=args.force)
        if any(os.path.realpath(file) == os.path.realpath(path) for file in args.files):
            raise InputError.at("is read for the spec: it would be replaced", Place(str(path)), "another -o")
    findings = merged(_flags(args), *_seen(args))
    if not args.files and not (args.here and not _answers().isatty()):
        findings = merged(findings, _asked(findings), Findings(unknown=_HINTS))
    findings = _with_unknown(findings)
    composed = compose(findings, _header(findings))
    if path is None:
        sys.stdout.write(composed.text)
    else:
        with end_on_signals():
            save(path, composed.text, force=args.force)
        sys.stdout.write(f"wrote {path}\n")
        sys.stdout.flush()  # before what is said of it
    _say(findings, composed.refused)
    return 0


def _flags(args: argparse.Namespace) -> Findings:
    """Answers that flags give, read as the dialogue reads them."""
    from dsgen.init.dialogue import QUESTIONS

    texts = {
        ("model",): ("--model", args.model),
        ("hardware", "gpu"): ("--gpu", args.gpu),
        ("hardware", "gpus_per_node"): ("--gpus-per-node", args.gpus_per_node),
        ("hardware", "nodes"): ("--nodes", args.nodes),
        ("training", "sequence_length"): ("--sequence-length", args.sequence_length),
        ("training", "global_batch"): ("--global-batch", args.global_batch),
        ("training", "method", "type"): ("--method", args.method),
    }
    given: list[Given] = []
    for question in QUESTIONS:
        flag, text = texts[question.path]
        if text is None:
            continue
        try:
            given += [Given(path, value, flag) for path, value in question.read(text).items() if value is not None]
        except ValueError as error:
            raise InputError(Problem(str(error), Place(flag))) from None
    return Findings(given=tuple(given))


def _seen(args: argparse.Namespace) -> list[Findings]:
    found = []
    if args.files:
        from dsgen.init.from_files import from_files

        found.append(from_files(args.files))
    if args.here:
        from dsgen.init.here import here

        found.append(here())
    return found


def _asked(known: Findings) -> Findings:
    from dsgen.init.dialogue import ask

    def say(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    return ask({each.path: each.value for each in known.given}, _answers(), say, _gpus_here(known))


def _answers() -> TextIO:
    """Where they come from: nowhere, where whoever started us closed it."""
    return io.StringIO() if sys.stdin is None else sys.stdin


def _gpus_here(known: Findings) -> dict[SpecPath, str]:
    """The GPUs of this machine, where it has some: what most people mean."""
    if which("nvidia-smi") is None or known.get("hardware", "gpu") or known.get("hardware", "node"):
        return {}
    from dsgen.init.here.gpus import read_gpus
    from dsgen.init.here.machine import Machine

    found = {each.path: each.value for each in read_gpus(Machine()).given}
    return {path: str(value) for path, value in found.items() if isinstance(value, str | int)}


def _with_unknown(findings: Findings) -> Findings:
    """What every spec needs and this one has not."""
    needed = [
        Unknown(("model",), "llama-3.1-8b", "a preset (dsgen show models), or a folder with config.json", True),
    ]
    if findings.get("hardware", "node") is None:
        needed.append(
            Unknown(("hardware", "gpu"), "h100-80gb-sxm", "which GPU (dsgen show gpus), or a node preset", True)
        )
    return merged(findings, Findings(unknown=tuple(needed)))


def _header(findings: Findings) -> list[str]:
    source = f"from {', '.join(findings.sources)}" if findings.sources else "from answers"
    return [
        f"A spec for dsgen plan, {source}. What is left out is decided, and said; dsgen schema spec has all keys.",
        "",
    ]


def _say(findings: Findings, refused: tuple[str, ...]) -> None:
    """What a person still has to know or do, on standard error."""
    unknown = [
        f"{'.'.join(each.path)}: {each.why}{' (a plan needs it)' * each.required}"
        for each in findings.unknown
        if not each.hint
    ]
    sections: list[tuple[str, Any]] = [
        ("Still unknown; the spec has a commented line for each:", unknown),
        ("A spec can't say this yet; it stands there as a comment:", refused),
        ("To know:", findings.notes),
    ]
    for title, lines in sections:
        if lines:
            sys.stderr.write("\n".join([title, *(f"  - {printable(line)}" for line in lines)]) + "\n")
