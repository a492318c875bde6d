"""How many processes a line of a shell script, or a file of Accelerate, starts; read, never run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from dsgen.documents.document import Lines, Range


@dataclass(frozen=True, slots=True)
class Launch:
    """One line that starts training."""

    world_size: int | None
    """None: it depends on what only the machine knows."""
    gpus_per_node: int | None
    range: Range


# These start several of what follows them, how many is for them to know.
_MULTIPLIERS = ("srun", "mpirun", "mpiexec", "horovodrun", "jsrun", "pdsh", "parallel", "xargs")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_TORCH_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_LOGICAL_LINE = re.compile(r"(?m)^(?:[^\n\\]|\\(?:\r?\n|.))*")


def launches_in(text: str, word: str) -> Iterator[Launch]:
    """The lines of a shell script that start something and name ``word`` (a script, or a config)."""
    lines = Lines(text)
    several = "#SBATCH" in text or any(re.search(rf"\b{name}\b", text) for name in _MULTIPLIERS)
    for match in _LOGICAL_LINE.finditer(text):
        if word not in match[0]:
            continue
        sizes = _sizes(_words(match[0]), several=several)
        if sizes is not None:
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            yield Launch(*sizes, lines.range(start, match.start() + len(match[0].rstrip())))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # an open quote
        return []


def _sizes(words: list[str], *, several: bool) -> tuple[int | None, int | None] | None:
    """(world size, processes per node) of a command; None for one that starts no training."""
    for place, word in enumerate(words):
        name, rest = word.rpartition("/")[2], words[place + 1 :]
        if name in _MULTIPLIERS:
            return None, None
        if name == "torchrun":
            return _torchrun(_options(rest))
        if _PYTHON.fullmatch(name) and rest[:1] == ["-m"] and len(rest) > 1:
            if rest[1] in _TORCH_MODULES:
                return _torchrun(_options(rest[2:]))
            return _accelerate(_options(rest[2:])) if rest[1] == "accelerate.commands.launch" else (None, None)
        if name == "deepspeed":
            return _deepspeed(_options(rest))
        if name == "accelerate":
            return _accelerate(_options(rest[1:])) if rest[:1] == ["launch"] else None
        if _PYTHON.fullmatch(name):
            # One process, unless a scheduler starts the script that holds the line many times.
            return (None, None) if several else (1, 1)
    return None


def _options(words: list[str]) -> dict[str, str]:
    """Options of the launcher: those before the script."""
    found = {}
    for place, word in enumerate(words):
        if word.endswith(".py"):
            break
        if word.startswith("--"):
            key, _, value = word[2:].partition("=")
            found[key.replace("-", "_")] = value or (words[place + 1] if place + 1 < len(words) else "")
    return found


def _number(options: dict[str, str], key: str, default: int | None) -> int | None:
    if key not in options:
        return default
    return int(options[key]) if re.fullmatch(r"[1-9]\d{0,5}", options[key]) else None


def _times(one: int | None, other: int | None) -> int | None:
    return one * other if one is not None and other is not None else None


def _torchrun(options: dict[str, str]) -> tuple[int | None, int | None]:
    per_node = _number(options, "nproc_per_node", 1)
    return _times(per_node, _number(options, "nnodes", 1)), per_node


def _deepspeed(options: dict[str, str]) -> tuple[int | None, int | None]:
    if {"hostfile", "exclude", "autotuning", "elastic_training"} & options.keys():
        return None, None
    if "include" in options:
        devices = re.fullmatch(r"localhost:(\d+(?:,\d+)*)", options["include"])
        count = len(devices[1].split(",")) if devices else None
        return count, count
    per_node = _number(options, "num_gpus", None)
    return _times(per_node, _number(options, "num_nodes", 1)), per_node


def _accelerate(options: dict[str, str]) -> tuple[int | None, int | None]:
    return _accelerate_sizes(_number(options, "num_processes", None), _number(options, "num_machines", 1))


def _accelerate_sizes(processes: int | None, machines: int | None) -> tuple[int | None, int | None]:
    """Accelerate counts processes over all machines."""
    even = processes is not None and machines and processes % machines == 0
    return processes, processes // machines if even and processes and machines else None


_ENTRY = r"(?m)^{key}[ \t]*:[ \t]*(?P<value>[^\s#]+)"


def accelerate_file(text: str) -> Launch | None:
    """What a YAML file of Accelerate says; None where it says nothing."""
    processes = re.search(_ENTRY.format(key="num_processes"), text)
    if processes is None:
        return None
    machines = re.search(_ENTRY.format(key="num_machines"), text)
    values = {"p": processes["value"], **({"m": machines["value"]} if machines else {})}
    sizes = _accelerate_sizes(_number(values, "p", None), _number(values, "m", 1))
    return Launch(*sizes, Lines(text).range(processes.start(), processes.end()))


def arguments_in(text: str, word: str) -> Iterator[tuple[dict[str, str], Range]]:
    """The options that each command which names ``word`` hands to its script; a bare flag is "true"."""
    lines = Lines(text)
    for match in _LOGICAL_LINE.finditer(text):
        words = _words(match[0]) if word in match[0] else []
        script = next((place for place, each in enumerate(words) if each.endswith(".py")), None)
        if script is not None:
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            yield _all_options(words[script + 1 :]), lines.range(start, match.start() + len(match[0].rstrip()))


def _all_options(words: list[str]) -> dict[str, str]:
    found = {}
    for place, word in enumerate(words):
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            following = words[place + 1] if place + 1 < len(words) else "--"
            found[key.replace("-", "_")] = value if equals else "true" if following.startswith("--") else following
    return found
