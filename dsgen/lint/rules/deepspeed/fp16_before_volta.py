from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, error, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS702",
    kinds=("deepspeed",),
    about=("target.gpu",),
    source="deepspeed/accelerator/cuda_accelerator.py:is_fp16_supported, runtime/engine.py:_do_sanity_check",
)
def fp16_before_volta(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """fp16 on a GPU older than Volta: DeepSpeed refuses.

    Compute capability 7.0 is wanted since DeepSpeed 0.13.0: "Type fp16 is not supported on your device". On 6.x
    the environment variable DS_ALLOW_DEPRECATED_FP16=1 allows it, without tensor cores. The GPU comes from ``--gpu`` or
    a spec.

    ```json bad --gpu p100-16gb
    {"train_batch_size": 8, "fp16": {"enabled": true}}
    ```

    ```json good --gpu v100-16gb-sxm
    {"train_batch_size": 8, "fp16": {"enabled": true}}
    ```

    ```json good --gpu p100-16gb
    {"train_batch_size": 8, "fp16": {"enabled": false}}
    ```
    """
    gpu = target.gpu
    if gpu is None or gpu.cuda is None or gpu.cuda >= 7 or not is_on(file, "fp16", target):
        return
    path = ("fp16", "enabled")
    card = f"{gpu.name} has compute capability {gpu.compute_capability}"
    if not target.since("0.13.0"):
        message = f"{card}: fp16 without tensor cores (7.0, Volta) saves memory, not time"
        yield warning(path, message, help="switch fp16 off, unless memory is short")
        return
    yield error(
        path,
        f"{card}, and fp16 begins with 7.0 (Volta): {target.library} raises",
        help="train in fp32"
        + (", or set DS_ALLOW_DEPRECATED_FP16=1 where it starts (no tensor cores)" if gpu.cuda >= 6 else ""),
    )
