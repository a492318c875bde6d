"""A launch line or script: how many processes on how many nodes, and what it hands to the training script."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dsgen.formats.launch.read.counts import GPUS, NODES, counts, whole
from dsgen.formats.launch.read.flags import Parsed, script_arguments, take_apart
from dsgen.formats.launch.read.shell import Command, Directive, commands
from dsgen.formats.launch.read.slurm import after_flags, flags_of, read_slurm
from dsgen.reading import LeftOut, Said


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launch says."""

    said: tuple[Said, ...]
    world_size: int | None
    """Processes in all, where the launcher says that instead of processes per node."""
    arguments: Mapping[str, Any]
    """The training script's own flags."""
    configs: tuple[str, ...]
    """Files that the command names."""
    left_out: tuple[LeftOut, ...]
    line: int
    hostfile: str | None = None
    """The file that lists the nodes (deepspeed --hostfile)."""


def read(text: str) -> Launch | None:
    """The launch in a text; None where it holds no command that starts training."""
    said: list[Said] = []
    left: list[LeftOut] = []
    found: Command | None = None
    slurm: dict[str, str] = {}
    for each in commands(text):
        if isinstance(each, Directive):
            flags = dict(flags_of(each.words))
            slurm |= flags
            _add(said, read_slurm(flags, each.line, left))
        elif found is None and _launcher(each.words) is not None:
            found = each
    if found is None:
        return None
    return _launch(found, said, left, slurm)


def _launch(command: Command, said: list[Said], left: list[LeftOut], slurm: dict[str, str]) -> Launch:
    words, line = command.words, command.line
    tasks: int | None = None
    while words and _base(words[0]) in ("srun", "sbatch", "mpirun", "nohup", "sudo", "time", "exec", "env"):
        outer = _base(words[0])
        inner = next((at for at in range(1, len(words)) if _launcher(words[at:], direct=True)), None)
        own = words[1:] if inner is None else words[1:inner]
        if outer in ("srun", "sbatch"):
            flags = dict(flags_of(own))
            slurm |= flags
            _add(said, read_slurm(flags, line, left), over=True)
            tasks = whole("ntasks", slurm, left)
        elif outer == "mpirun":
            tasks = _of_mpirun(own)
        if inner is None:
            words = after_flags(words[1:])
            break
        words = words[inner:]
    kind = _launcher(words, direct=True) or ""
    parsed = _parsed(kind, words)
    world = None
    if kind == "torchrun":
        _add(said, _of_torchrun(parsed, line, left), over=True)
    elif kind == "deepspeed":
        _add(said, _of_deepspeed(parsed, line, left), over=True)
    elif kind == "accelerate":
        world = whole("num_processes", parsed.launcher, left)
        _add(said, counts(parsed.launcher, {"num_machines": NODES}, line, left), over=True)
        said += _of_accelerate(parsed, line)
    elif tasks is not None and not any(each.path == GPUS for each in said):
        world = tasks  # one process a task: nothing starts more
    devices = command.variables.get("CUDA_VISIBLE_DEVICES")
    if world is None and devices and not any(each.path == GPUS for each in said) and _is_list(devices):
        said.append(Said(GPUS, len(devices.split(",")), (line,), "CUDA_VISIBLE_DEVICES"))
    named = [parsed.launcher[key] for key in ("config_file",) if key in parsed.launcher]
    arguments = dict(parsed.arguments)
    for key in ("deepspeed_config_file", "mixed_precision"):
        if key in parsed.launcher:
            arguments.setdefault(key, parsed.launcher[key])
    return Launch(
        said=tuple(said),
        world_size=world,
        arguments={key: value for key, value in arguments.items() if "$" not in value},
        configs=(*named, *(word for word in parsed.bare if word.endswith((".yaml", ".yml", ".json")))),
        left_out=(
            *(each for each in left if not _known(each.key, said)),
            *(
                LeftOut(key, value, "a variable that nothing here sets")
                for key, value in arguments.items()
                if "$" in value
            ),
        ),
        line=line,
        hostfile=parsed.launcher.get("hostfile") if kind == "deepspeed" else None,
    )


def read_hostfile(text: str) -> tuple[Said, ...]:
    """Nodes, and their GPUs where all have as many: lines of ``worker-1 slots=8``."""
    slots = [int(match[1]) for line in text.splitlines() if (match := _HOST.match(line))]
    if not slots:
        return ()
    nodes = Said(NODES, len(slots), (1,), "nodes in the hostfile")
    return (nodes, Said(GPUS, slots[0], (1,), "slots in the hostfile")) if len(set(slots)) == 1 else (nodes,)


# deepspeed/launcher/runner.py:_parse_hostfile
_HOST = re.compile(r"\s*[^\s#]+\s+slots=(\d{1,4})\s*(?:#.*)?$", re.ASCII)
_COUNTED = {"nnodes": NODES, "num_nodes": NODES, "num_machines": NODES, "nproc_per_node": GPUS, "num_gpus": GPUS}


def _known(key: str, said: list[Said]) -> bool:
    """Whether something else says what a flag does not: Slurm, say."""
    return any(each.path == _COUNTED.get(key) for each in said)


def _of_mpirun(words: Sequence[str]) -> int | None:
    """Processes in all: ``-np 16``, or ``-n``."""
    for flag, value in pairwise(words):
        if flag in ("-np", "-n", "--np", "-c") and value.isdecimal() and 0 < len(value) < 9:
            return int(value) or None
    return None


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _launcher(words: Sequence[str], *, direct: bool = False) -> str | None:
    """Which launcher the words call; ``direct``: at their start, not through another command."""
    if not words:
        return None
    name = _base(words[0])
    if name in ("torchrun", "deepspeed"):
        return name
    if name == "accelerate" and "launch" in words[1:2]:
        return "accelerate"
    if name in ("llamafactory-cli", "axolotl", "swift"):
        return "cli"
    if name.startswith("python") or name in ("uv", "poetry"):
        modules = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun"}
        modules |= {"accelerate.commands.launch": "accelerate", "deepspeed.launcher.runner": "deepspeed"}
        for before, after in pairwise(words):
            if before == "-m" and after in modules:
                return modules[after]
        return "python" if any(word.endswith(".py") or word == "-m" for word in words[1:]) else None
    if direct or name not in ("srun", "sbatch", "mpirun", "nohup", "sudo", "time", "exec", "env"):
        return None
    inner = any(_launcher(words[at:], direct=True) for at in range(1, len(words)))
    return name if inner or any(word.endswith((".py", ".sh")) for word in words) else None


def _parsed(kind: str, words: Sequence[str]) -> Parsed:
    if kind in ("torchrun", "deepspeed", "accelerate"):
        start = 2 if _base(words[0]) == "accelerate" else 1
        if _base(words[0]).startswith("python"):
            start = list(words).index("-m") + 2
        return take_apart(words[start:])
    script = next((at for at, word in enumerate(words) if word.endswith(".py")), 0)
    arguments, bare = script_arguments(words[script + 1 :])
    return Parsed({}, words[script] if words else None, arguments, bare)


def _add(said: list[Said], new: Iterator[Said], *, over: bool = False) -> None:
    """Adds what is new; ``over``: the launcher itself knows better than what started it."""
    for each in list(new):
        known = next((at for at, old in enumerate(said) if old.path == each.path), None)
        if known is None:
            said.append(each)
        elif over:
            said[known] = each


def _of_torchrun(parsed: Parsed, line: int, left: list[LeftOut]) -> Iterator[Said]:
    flags = parsed.launcher
    nodes = flags.get("nnodes", "1" if "standalone" in flags else "")
    if ":" in nodes:
        left.append(LeftOut("nnodes", nodes, "an elastic number of nodes; the largest is taken"))
        nodes = nodes.rpartition(":")[2]
    given = {**flags, **({"nnodes": nodes} if nodes else {})}
    return counts(
        given, {"nproc_per_node": GPUS, "nnodes": NODES}, line, left, default={"nproc_per_node": 1, "nnodes": 1}
    )


def _of_deepspeed(parsed: Parsed, line: int, left: list[LeftOut]) -> Iterator[Said]:
    flags = parsed.launcher
    include = flags.get("include", flags.get("i"))
    said = list(counts(flags, {"num_gpus": GPUS, "num_nodes": NODES}, line, left))
    if include and not any(each.path == GPUS for each in said):
        slots = [part.partition(":")[2] for part in include.split("@")]
        numbers = {len(slot.split(",")) for slot in slots if slot}
        if len(numbers) == 1:
            said.append(Said(GPUS, numbers.pop(), (line,), "--include"))
            said += [] if any(each.path == NODES for each in said) else [Said(NODES, len(slots), (line,), "--include")]
    return iter(said)


def _of_accelerate(parsed: Parsed, line: int) -> Iterator[Said]:
    flags = parsed.launcher
    if flags.get("mixed_precision") in ("bf16", "fp16"):
        yield Said(("training", "precision"), flags["mixed_precision"], (line,), "--mixed_precision")
    if flags.get("zero_stage", "").isdecimal() and int(flags["zero_stage"]) <= 3:
        yield Said(("want", "zero_stage"), int(flags["zero_stage"]), (line,), "--zero_stage")
    for key, path in (
        ("offload_optimizer_device", "offload_optimizer"),
        ("offload_param_device", "offload_parameters"),
    ):
        if flags.get(key) in ("none", "cpu", "nvme"):
            yield Said(("want", path), flags[key], (line,), f"--{key}")
    count = flags.get("gradient_accumulation_steps", "")
    if count.isdecimal() and int(count) > 0:
        yield Said(("want", "accumulation"), int(count), (line,), "--gradient_accumulation_steps")


def _is_list(devices: str) -> bool:
    return all(part.strip().isdecimal() for part in devices.split(","))
