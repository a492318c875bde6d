"""Runs training code of the real model on tensors without contents; writes what was alive when."""

import gc
from importlib import import_module
from typing import Any

from dsgen.workers.wire import Events, open_worker

_FRAMEWORKS = {
    "fsdp2": ("fsdp2", "Fsdp2"),
    "fsdp1": ("fsdp1", "Fsdp1"),
    "ddp": ("plain", "Plain"),
    "deepspeed": ("deepspeed", "DeepSpeed"),
}


def main() -> None:
    """One ``simulated`` event for each depth asked for; ``missing`` where a library is."""
    request, events = open_worker()
    libraries = ["torch"]
    if request["framework"] == "deepspeed":
        libraries.append("deepspeed")
    if request["transformers"]:
        libraries.append("transformers")
    for library in libraries:
        events.enter(f"import {library}")
        if not _load(library, events):
            return
    try:
        _simulate(request, events)
    except Exception as error:
        events.fail(error)


def _load(name: str, events: Events) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            events.write("missing", library=name)
            return False
        events.fail(error)
    return True


def _simulate(request: dict[str, Any], events: Events) -> None:
    import torch

    from dsgen.workers.simulation import fake
    from dsgen.workers.simulation.loop import simulate

    torch.set_num_threads(1)
    fake.join(request["rank"], request["world_size"])
    module, name = _FRAMEWORKS[request["framework"]]
    framework: Any = getattr(import_module(f"dsgen.workers.simulation.{module}"), name)
    for layers in request["depths"]:
        events.enter(f"simulate {layers} layers")
        events.write("simulated", **simulate(request, framework, layers))
        gc.collect()
    events.write("end", torch=torch.__version__)


if __name__ == "__main__":
    main()
