from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import offload_device
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_DEEP = (
    "free_activation",
    "offload_activation",
    "offload_opt_states",
    "offload_parameters",
    "symmetric_memory",
    "passes",
)


@rule(
    "DS803",
    kinds=("deepspeed",),
    about=("compile",),
    since="0.16.6",
    source="deepspeed/compile/init_z3.py, runtime/engine.py:compile",
)
def compile_settings_that_contradict(file: ConfigFile, _target: LintTarget) -> Iterator[Mark]:
    """Settings of compile that exclude each other, or that act with DeepCompile only while it is off.

    What is moved or freed (free_activation, offload_activation, offload_opt_states, offload_parameters,
    symmetric_memory, passes) is DeepCompile's: without deepcompile true it does nothing. Of the three offloads at
    most one can be on, and offload_opt_states does not go with ZeRO's own optimizer offload.

    ```json bad
    {"train_batch_size": 8, "compile": {"offload_activation": true}}
    ```

    ```json bad --deepspeed 0.19.8
    {"train_batch_size": 8, "compile": {"deepcompile": true, "offload_activation": true,
     "offload_parameters": true}}
    ```

    ```json good
    {"train_batch_size": 8, "compile": {"deepcompile": true, "offload_parameters": true}}
    ```
    """
    section = file.section("compile")
    on = [key for key in _DEEP if section.get(key) is True or (key == "passes" and section.get(key))]
    if not on:
        return
    path = ("compile", on[0])
    if section.get("deepcompile", False) is False:
        message = f"{', '.join(on)} {'acts' if len(on) == 1 else 'act'} with compile.deepcompile only, which is off"
        yield warning(path, message, help='write "deepcompile": true, or remove it', on="key")
        return
    moved = [key for key in on if key.startswith("offload_")]
    if len(moved) > 1:
        yield error(
            ("compile", moved[0]),
            f"{' and '.join(moved)} exclude each other: engine.compile() raises",
            help="keep one of them",
            on="key",
        )
    elif moved == ["offload_opt_states"] and offload_device(file, "offload_optimizer") in ("cpu", "nvme"):
        message = "offload_opt_states beside ZeRO's offload_optimizer: engine.compile() raises"
        yield error(path, message, help="keep one of the two", on="key")
    passes = section.get("passes")
    if isinstance(passes, list) and "autotp" in passes and len(passes) > 1:
        message = f"the autotp pass cannot be combined with {', '.join(str(p) for p in passes if p != 'autotp')}"
        yield error(("compile", "passes"), f"{message}: engine.compile() raises NotImplementedError", help="keep one")
