"""What this machine and this Python have: torch, DeepSpeed, devices, number types."""

import sys
from importlib import import_module
from typing import Any

from dsgen.workers.wire import Events, open_worker


def _load(name: str, events: Events) -> Any:
    events.enter(f"import {name}")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            events.write("missing", library=name)
            sys.exit(0)
        events.fail(error)
    except Exception as error:
        events.fail(error)


def main() -> None:
    """Writes one ``machine`` event, or ``missing``."""
    request, events = open_worker()
    torch = _load("torch", events)
    deepspeed = _load("deepspeed", events) if request["deepspeed"] else None
    events.enter("look at the machine")
    cuda = request["device"] != "cpu" and torch.cuda.is_available()
    events.write(
        "machine",
        python=".".join(str(part) for part in sys.version_info[:2]),
        torch=torch.__version__,
        deepspeed=deepspeed.__version__ if deepspeed else None,
        libraries=[library.__file__ for library in (torch, deepspeed) if library],
        device="cuda" if cuda else "cpu",
        devices=torch.cuda.device_count() if cuda else 0,
        device_name=torch.cuda.get_device_name(0) if cuda else None,
        fp16=cuda or _cpu_has_fp16(torch),
        libaio=_has_libaio() if request["libaio"] else None,
    )


def _cpu_has_fp16(torch: Any) -> bool:
    # The same question as DeepSpeed's CPU accelerator asks (is_fp16_supported).
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    except (AttributeError, RuntimeError):
        return False


def _has_libaio() -> bool:
    from deepspeed.accelerator import get_accelerator

    return bool(get_accelerator().create_op_builder("AsyncIOBuilder").is_compatible(verbose=False))


if __name__ == "__main__":
    main()
