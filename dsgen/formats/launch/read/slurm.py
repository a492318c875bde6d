"""Flags of sbatch and srun, on a command or in #SBATCH lines."""

from collections.abc import Iterator, Mapping, Sequence

from dsgen.formats.launch.read.counts import GPUS, NODES, counts
from dsgen.reading import LeftOut, Said
from dsgen.units import parse_bytes

_SLURM = {"N": "nodes", "n": "ntasks", "G": "gpus", "c": "cpus_per_task", "p": "partition", "J": "job_name"}
_SLURM |= {"t": "time", "o": "output", "e": "error", "A": "account", "w": "nodelist", "q": "qos", "C": "constraint"}


def flags_of(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Flags of sbatch and srun: ``--nodes=4``, ``--nodes 4``, ``-N 4``, ``-N4``."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and at < len(words) and not words[at].startswith("-"):
                value, at = words[at], at + 1
            yield name.replace("-", "_"), value
        elif word.startswith("-") and word[1:2] in _SLURM:
            value = word[2:]
            if not value and at < len(words):
                value, at = words[at], at + 1
            yield _SLURM[word[1]], value


def after_flags(words: Sequence[str]) -> tuple[str, ...]:
    """The command that srun starts, where it is no launcher: from the first word that is no flag."""
    start = next((at for at, word in enumerate(words) if word.startswith("python") or word.endswith(".py")), len(words))
    return tuple(words[start:])


def read_slurm(flags: Mapping[str, str], line: int, left: list[LeftOut]) -> Iterator[Said]:
    """Nodes, GPUs of a node, and the memory that the job may use on one."""
    yield from counts(flags, {"nodes": NODES}, line, left)
    for key in ("gpus_per_node", "gres", "ntasks_per_node"):
        value = flags.get(key, "")
        kind, _, count = value.removeprefix("gpu:").rpartition(":") if key != "ntasks_per_node" else ("", "", value)
        if key == "gres" and not value.startswith("gpu"):
            continue
        if not count.isdecimal() or not int(count):
            continue
        if key == "ntasks_per_node" and int(count) == 1:
            continue  # one launcher a node, which starts the processes itself
        yield Said(GPUS, int(count), (line,), f"--{key.replace('_', '-')}")
        if kind and not kind.isdecimal():
            yield Said(("hardware", "gpu"), kind, (line,), f"--{key.replace('_', '-')}")
        break
    memory = flags.get("mem", "")
    if memory not in ("", "0"):
        try:
            size = parse_bytes(
                f"{memory}iB" if memory[-1:] in "KMGT" else f"{memory}MiB" if memory.isdecimal() else memory
            )
        except ValueError:
            left.append(LeftOut("mem", memory, "is no size"))
        else:
            yield Said(("hardware", "host_memory"), size, (line,), "--mem, the job's memory on a node")
