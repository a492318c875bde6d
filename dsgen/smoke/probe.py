"""Asks a worker what this machine and this Python have."""

from pathlib import Path

from dsgen.errors import DsgenError, MissingToolError
from dsgen.processes.ask import ask
from dsgen.smoke.values import Machine, Options

INSTALL = "pip install 'dsgen[smoke]'"
_TIMEOUT = 180.0  # importing torch from a cold network file system takes a minute and more


def probe(options: Options, deepspeed: bool, libaio: bool, folder: Path) -> Machine:
    """The machine; what not every input needs is looked for if asked (``libaio`` compiles a line of C)."""
    request = {"device": options.device, "deepspeed": deepspeed, "libaio": libaio}
    events = ask("probe", request, folder, _TIMEOUT, device_environment(options))
    last = events[-1]
    if last["event"] == "missing":
        raise MissingToolError.at(f"{last['library']} is not installed, and smoke runs the real one", help=INSTALL)
    if last["event"] == "error":
        raise MissingToolError.at(
            f"{last['phase']} fails: {last['type']}: {' '.join(last['message'].split())}",
            help=f"repair the installation, or {INSTALL} in a fresh environment",
        )
    if last["event"] != "machine":
        raise DsgenError.at(f"the process ended in: {last['phase']}", help=f"its output is in {folder / 'probe.log'}")
    found = {name: last[name] for name in Machine.__dataclass_fields__}
    return Machine(**{**found, "libraries": tuple(found["libraries"])})


def device_environment(options: Options, machine: Machine | None = None) -> dict[str, str]:
    """What makes DeepSpeed take the device that we mean."""
    if options.device == "cpu" or (machine is not None and machine.device == "cpu"):
        return {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    return {}
