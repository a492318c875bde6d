from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import is_on
from dsgen.lint.mark import Mark, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_BF16 = ("bf16", "bfloat16", "torch.bfloat16")


@rule(
    "DS701",
    kinds=("deepspeed",),
    about=("target.gpu",),
    source="torch/cuda/__init__.py:is_bf16_supported (major >= 8, else emulated), "
    "deepspeed/accelerator/cuda_accelerator.py:is_bf16_supported",
)
def bf16_before_ampere(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """bf16 on a GPU that does not compute in it.

    NVIDIA's tensor cores take bf16 since Ampere (compute capability 8.0). On older cards torch emulates it: nothing
    raises, and training is several times slower than in fp16. Torch versions that do not emulate refuse. The GPU comes
    from ``--gpu`` or a spec.

    ```json bad --gpu v100-32gb-sxm
    {"train_batch_size": 8, "bf16": {"enabled": true}}
    ```

    ```json bad --gpu t4 --deepspeed 0.19.8
    {"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}}
    ```

    ```json good --gpu a100-80gb-sxm
    {"train_batch_size": 8, "bf16": {"enabled": true}}
    ```

    ```json good --gpu v100-32gb-sxm
    {"train_batch_size": 8, "fp16": {"enabled": true}}
    ```
    """
    if target.gpu is None:
        return
    from dsgen.lint.amounts import has_bf16

    autocast = file.get("torch_autocast", "enabled") is True and file.get("torch_autocast", "dtype") in _BF16
    asked = [("bf16", "enabled")] if is_on(file, "bf16", target) else []
    asked += [("torch_autocast", "dtype")] if autocast else []
    if has_bf16(target.gpu) is not False:
        return
    for path in asked:
        capability = target.gpu.compute_capability
        in_fp16 = (target.gpu.cuda or 0) >= 7
        yield warning(
            path,
            f"{target.gpu.name} (compute capability {capability}) does not compute in bf16, which begins with 8.0 "
            "(Ampere): it is emulated, without tensor cores",
            help='write "fp16": {"enabled": true} with dynamic loss scaling instead'
            if in_fp16
            else "train in fp32 on this card: it has no fp16 that DeepSpeed takes, either",
        )
