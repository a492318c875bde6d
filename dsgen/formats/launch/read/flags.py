"""Flags of launchers: which of them have a value, and what a command line says by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Flags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command line, taken apart."""

    launcher: Flags
    """The launcher's flags by their name without dashes, dashes inside as underscores."""
    script: str | None
    arguments: Flags
    """The script's own flags, by name."""
    bare: tuple[str, ...]
    """The script's words that belong to no flag: a config's name, say."""


SWITCHES = frozenset(
    {
        *("standalone", "no_python", "module", "m", "run_path", "use_env", "no_local_rank", "no_ssh", "force_multi"),
        *("save_pid", "elastic_training", "multi_gpu", "use_deepspeed", "use_fsdp", "cpu", "tpu", "same_network"),
        *("mps", "quiet", "q", "debug", "use_mps_device", "exclusive", "unbuffered", "u", "label", "l", "no_ssh_check"),
        *("bind_cores_to_rank", "exit_on_failure", "overcommit", "zero3_init_flag_off"),
    }
)
"""Flags of torchrun, deepspeed, accelerate launch, srun and sbatch that take no value."""


def take_apart(words: Sequence[str]) -> Parsed:
    """Words after the launcher's name: its flags, the script, and the script's."""
    launcher: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or word == "-":
            break
        name, equals, value = word.lstrip("-").partition("=")
        key = name.replace("-", "_")
        at += 1
        if equals:
            launcher[key] = value
        elif key in ("m", "module") and at < len(words):
            launcher[key] = words[at]
            break
        elif key in SWITCHES:
            launcher[key] = "true"
        elif at < len(words):
            launcher[key] = words[at]
            at += 1
    script = words[at] if at < len(words) else None
    arguments, bare = script_arguments(words[at + 1 :])
    return Parsed(launcher, script, arguments, bare)


def script_arguments(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """``--key value``, ``--key=value`` and ``--switch``; of a list of values the words, joined by commas."""
    found: dict[str, str] = {}
    bare: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("--"):
            key, equals, value = word.partition("=")
            if equals and key.isidentifier():  # hydra's, and LLaMA-Factory's, key=value
                found[key] = value
            elif not word.startswith("-"):
                bare.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        key = name.replace("-", "_")
        if equals:
            found[key] = value
            continue
        values = []
        while at < len(words) and not _is_flag(words[at]):
            values.append(words[at])
            at += 1
        found[key] = ",".join(values) if values else "true"
    return found, tuple(bare)


def _is_flag(word: str) -> bool:
    """Whether a word starts a flag; -1 is a value."""
    return word.startswith("-") and not word[1:2].isdigit() and word != "-"
