from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, error, remove
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# deepspeed/runtime/config.py:DtypeEnum
_NAMES = {
    **dict.fromkeys(("fp16", "float16", "half", "torch.float16"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("fp32", "float32", "float", "torch.float32"), "fp32"),
}


@rule(
    "DS408",
    kinds=("deepspeed",),
    about=("param_dtype",),
    since="0.19.2",
    source="deepspeed/runtime/engine.py:_assert_valid_mixed_precision_config",
)
def param_dtype_against_the_mode(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """data_types.param_dtype names another type than fp16 or bf16 that is switched on: the engine asserts.

    The weights' type follows fp16.enabled and bf16.enabled (fp32 where neither is on); param_dtype, if it is
    written, must say the same.

    ```json bad
    {"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"param_dtype": "fp16",
     "grad_accum_dtype": "bf16"}}
    ```

    ```json fixed
    {"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"}}
    ```

    ```json good
    {"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"param_dtype": "bf16"}}
    ```
    """
    said = _NAMES.get(str(file.get("data_types", "param_dtype")))
    modes = {mode: is_on(file, mode, target) for mode in ("fp16", "bf16")}
    if said is None or None in modes.values() or file.has("bfloat16"):
        return
    mode = next((name for name, on in modes.items() if on), "fp32")
    if said != mode:
        yield error(
            ("data_types", "param_dtype"),
            f"param_dtype {said} against the type of the weights, {mode}: the engine asserts",
            help="leave param_dtype out" + (f', or write "{said}": {{"enabled": true}}' if said != "fp32" else ""),
            fix=remove("leave param_dtype out", ("data_types", "param_dtype")),
        )
