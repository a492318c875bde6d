"""DeepSpeed's C++ extensions: which ones a config needs, where they lie, and building them once.

DeepSpeed builds them when they are first loaded, in every rank at once and without a word. Here they
are built before any rank starts, in one process, with a time limit of its own and a line that says so.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dsgen.errors import DsgenError, MissingToolError
from dsgen.processes.ask import ask
from dsgen.processes.events import Event
from dsgen.processes.session import tool
from dsgen.smoke.locks import Say, clear_stale, held
from dsgen.smoke.probe import INSTALL, device_environment
from dsgen.smoke.values import Config, Machine, Options

# Name of the op (its folder) to the class that builds it; deepspeed/ops/op_builder/.
BUILDERS = {
    "deepspeed_shm_comm": "ShareMemCommBuilder",
    "fused_adam": "FusedAdamBuilder",
    "cpu_adam": "CPUAdamBuilder",
    "cpu_adagrad": "CPUAdagradBuilder",
    "cpu_lion": "CPULionBuilder",
    "async_io": "AsyncIOBuilder",
}
_ADAM = ("adam", "adamw")


def needed(config: Config, machine: Machine) -> list[str]:
    """Ops that DeepSpeed will load for this config, in the order of ``BUILDERS``."""
    ops = {"deepspeed_shm_comm"} if machine.device == "cpu" else set()
    zero = _section(config, "zero_optimization")
    devices = [_section(zero, f"offload_{what}").get("device") for what in ("optimizer", "param")]
    if "nvme" in devices:
        ops.add("async_io")
    optimizer = _section(config, "optimizer")
    name, params = str(optimizer.get("type", "")).lower(), _section(optimizer, "params")
    offloaded = devices[0] in ("cpu", "nvme") or zero.get("cpu_offload") is True
    if name in _ADAM and not params.get("torch_adam"):
        ops.add("cpu_adam" if offloaded else "fused_adam")
    elif offloaded and name in ("adagrad", "lion"):
        ops.add(f"cpu_{name}")
    return [op for op in BUILDERS if op in ops]


def _section(config: Config, key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def extensions_folder(machine: Machine) -> Path:
    """Where built ops lie: TORCH_EXTENSIONS_DIR if the user set it, else a folder for exactly these libraries.

    An op that was built for another torch, or from another place, is rebuilt in place by torch: two
    environments that share a folder would take it from each other at every turn.
    """
    chosen = os.environ.get("TORCH_EXTENSIONS_DIR")
    if chosen:
        return Path(chosen).absolute()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    where = hashlib.sha256("\n".join(machine.libraries).encode()).hexdigest()[:8]
    name = f"py{machine.python}-torch{machine.torch}-deepspeed{machine.deepspeed}-{machine.device}-{where}"
    return cache / "dsgen" / "torch_extensions" / name


def prepare(ops: Sequence[str], machine: Machine, options: Options, folder: Path, say: Say) -> Path:
    """Builds what is missing, under a lock, after clearing what killed builds left. Returns the ops' folder."""
    extensions = extensions_folder(machine)
    try:
        with held(extensions, options.build_timeout, say):
            clear_stale(extensions, options.build_timeout, say)
            missing = [op for op in ops if not _is_built(extensions, op, machine)]
            if missing:
                _check_tools(missing[0])
                _build(missing, machine, options, extensions, folder, say)
                for op in missing:
                    _stamp(extensions, op).write_text(_key(machine), "utf-8")
    except OSError as error:
        raise DsgenError.at(
            f"no ops can be built in {extensions}: {error.strerror}",
            help="set TORCH_EXTENSIONS_DIR (or XDG_CACHE_HOME) to a folder that can be written to",
        ) from error
    return extensions


def _is_built(extensions: Path, op: str, machine: Machine) -> bool:
    """Whether a rank that loads the op finds it ready: these libraries have built it once, and ninja would do nothing.

    torch runs ninja at every load; one that was killed in a rebuild has removed the objects of the build before it.
    """
    ninja = tool("ninja")
    stamp = _stamp(extensions, op)
    if ninja is None or not stamp.is_file() or stamp.read_text("utf-8") != _key(machine):
        return False
    ran = subprocess.run([ninja, "-n"], cwd=extensions / op, capture_output=True, check=False)
    return ran.returncode == 0 and b"no work to do" in ran.stdout


def _stamp(extensions: Path, op: str) -> Path:
    """Says which libraries have built and loaded this op last; gone with its folder."""
    return extensions / op / ".dsgen"


def _key(machine: Machine) -> str:
    """The libraries with their places: torch rebuilds an op for the same versions of another environment."""
    versions = (f"python {machine.python}", f"torch {machine.torch}", f"deepspeed {machine.deepspeed}")
    return "\n".join([*versions, *machine.libraries])


def _check_tools(op: str) -> None:
    compiler = os.environ.get("CXX", "c++")  # as torch.utils.cpp_extension chooses it
    if not tool(compiler.split()[0]):
        raise MissingToolError.at(
            f"DeepSpeed builds its op {op}, and there is no C++ compiler ({compiler})",
            help="install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), or set CXX",
        )
    if not tool("ninja"):
        raise MissingToolError.at(f"DeepSpeed builds its op {op}, and there is no ninja", help=INSTALL)


def _build(ops: Sequence[str], machine: Machine, options: Options, extensions: Path, folder: Path, say: Say) -> None:
    def on_event(event: Event) -> None:
        if event["event"] == "phase" and event["phase"].startswith("build "):
            op = event["phase"].removeprefix("build ")
            say(f"building op {op} (once per environment, 1-3 minutes on a small machine) in {extensions}")
        elif event["event"] == "built":
            say(f"built op {event['op']} in {event['seconds']:.0f} seconds")

    environment = {**device_environment(options, machine), "TORCH_EXTENSIONS_DIR": str(extensions)}
    request = {"ops": {op: BUILDERS[op] for op in ops}}
    events = ask("build_ops", request, folder, options.build_timeout, environment, on_event)
    last = events[-1]
    if last["event"] == "error":
        message = " ".join(last["message"].split())[:300]
        log = folder / "build_ops.log"
        raise DsgenError.at(f"{last['phase']}: {last['type']}: {message}", help=f"the compiler's words are in {log}")
    if [event["op"] for event in events if event["event"] == "built"] != list(ops):
        raise DsgenError.at(
            f"the process was killed in: {last['phase']}; too little memory for the compiler?",
            help=f"its output is in {folder / 'build_ops.log'}",
        )
