"""Names that DeepSpeed 0.14.0 to 0.14.3 import and no config needs, for today's torch and numpy, which lack them."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

_FOR_THE_CPU = ("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch")


def stand_in() -> None:
    """Elastic agent and autotuner ask for them as they are imported; 0.14.0 on the CPU for Intel's extensions, too."""
    import numpy
    from torch.distributed.elastic.agent.server import api

    for owner, name in ((api, "log"), (api, "_get_socket_with_port"), (numpy, "BUFSIZE")):
        if not hasattr(owner, name):
            setattr(owner, name, None)
    spec = importlib.util.find_spec("deepspeed")
    origin = spec.origin if spec else ""
    if not str(origin).endswith("deepspeed-0.14.0/deepspeed/__init__.py"):
        return  # later releases ask whether the extensions are there, and act on it
    for name in _FOR_THE_CPU:
        if importlib.util.find_spec(name) is None:
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            sys.modules[name] = module
