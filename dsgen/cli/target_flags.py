"""The flags that state what files are meant for, for the commands that ask for it."""

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from dsgen.lint.settings import LOADERS


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _looked_up(name: str) -> Callable[[str], Any]:
    """Looks a name up in dsgen's tables, which are read only where somebody gives the flag."""

    def look_up(text: str) -> Any:
        from dsgen.lint import stated

        try:
            return getattr(stated, name)(text)
        except stated.Unknown as unknown:
            raise argparse.ArgumentTypeError(str(unknown)) from None

    return look_up


_FLAGS: dict[str, dict[str, Any]] = {
    "deepspeed": {"metavar": "VERSION", "help": "DeepSpeed version (default: the project's, the newest)"},
    "loaded_by": {"choices": LOADERS, "help": "who reads the file, and fills in what is auto"},
    "world_size": {"type": _positive, "metavar": "N", "help": "processes in all"},
    "gpus_per_node": {"type": _positive, "metavar": "N", "help": "processes per node"},
    "gpu": {"type": _looked_up("gpu"), "metavar": "NAME", "help": "the GPU, or its memory (24GiB)"},
    "host_memory": {"type": _looked_up("host_memory"), "metavar": "SIZE", "help": "RAM of one node (512GiB)"},
    "model": {
        "type": _looked_up("model"),
        "metavar": "MODEL",
        "help": "a name, a folder with config.json, or a size (7B)",
    },
    "sequence_length": {"type": _positive, "metavar": "N", "help": "tokens per sequence"},
    "micro_batch": {"type": _positive, "metavar": "N", "help": "sequences per process, where the file leaves it open"},
    "checkpointing": {
        "type": _looked_up("checkpointing"),
        "metavar": "KIND",
        "help": "of activations: none, full, selective or every:2",
    },
    "method": {"type": _looked_up("method"), "metavar": "METHOD", "help": "what is trained: full, lora or qlora"},
    "spec": {"metavar": "SPEC", "help": "a spec.yaml that says all of these"},
}
NAMES = tuple(_FLAGS)


def add_target_flags(parser: argparse.ArgumentParser, names: Iterable[str] = NAMES, **said: str) -> None:
    """Adds these of the flags, under a heading of their own; ``said`` is the help of those that mean something else."""
    group = parser.add_argument_group("what the files are meant for (what is not known is not guessed)")
    for name in names:
        words = {"help": said[name]} if name in said else {}
        group.add_argument(f"--{name.replace('_', '-')}", **(_FLAGS[name] | words))


def target_flags(args: argparse.Namespace) -> dict[str, Any]:
    """What was given; None where a flag was not."""
    return {name: getattr(args, name) for name in NAMES if hasattr(args, name)}
