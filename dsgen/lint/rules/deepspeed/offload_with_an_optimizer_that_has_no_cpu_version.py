from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device, optimizer_type, stage
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.schema import deepspeed_schema
from dsgen.lint.target import LintTarget

_ON_CPU = ("adam", "adamw", "adagrad", "lion", "muon")
_USE = "use AdamW, Adam, Adagrad or Lion"
_TORCH = deepspeed_schema()["properties"]["optimizer"]["x-dsgen"]["variants"]["others"]["names"]


@rule(
    "DS309",
    kinds=("deepspeed",),
    about=("offload_optimizer",),
    source="deepspeed/runtime/engine.py:_configure_basic_optimizer",
)
def offload_with_an_optimizer_that_has_no_cpu_version(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """CPU offload with an optimizer of which DeepSpeed has no CPU version.

    Offload runs the step on the CPU. DeepSpeed has fast CPU versions of Adam, AdamW, Adagrad and Lion; torch's own
    run there slowly and unchecked ("torch_adam": true asks for that as well), and FusedLamb does not run there at
    all.

    ```json bad
    {"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_allow_untested_optimizer": true,
     "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    ```

    ```json good
    {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}},
     "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    ```
    """
    name = optimizer_type(file)
    if name is None or offload_device(file, "offload_optimizer") not in ("cpu", "nvme") or stage(file, target) == 0:
        return
    by_torch = file.get("optimizer", "params", "torch_adam") is True
    if name in _ON_CPU and not by_torch:
        return
    if name == "lamb":
        yield error(
            ("optimizer", "type"), "Lamb is a CUDA optimizer; with offload its step would run on the CPU", help=_USE
        )
    elif name in _TORCH and file.get("zero_allow_untested_optimizer", default=False) is False:
        return  # the engine raises, whether it is offloaded or not: DS506
    elif name in _TORCH or by_torch:
        asked = "torch_adam asks for" if by_torch else f"{name} is"
        message = (
            f"{asked} torch's own optimizer, which runs offloaded steps slowly: DeepSpeed has no CPU version of it"
        )
        path = ("optimizer", "params", "torch_adam") if by_torch else ("optimizer", "type")
        yield warning(path, message, help=_USE)
