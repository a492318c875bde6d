from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_NOT_CUDA = ("intel",)


@rule(
    "DS709",
    kinds=("deepspeed",),
    about=("target.gpu",),
    source="deepspeed/runtime/swap_tensor/aio_config.py, runtime/superoffload/superoffload_stage3.py",
)
def feature_of_cuda_on_another_accelerator(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A feature that DeepSpeed has on CUDA only, for an accelerator of another kind: it asserts.

    GPUDirect Storage (aio.use_gds) and super_offload ask for the accelerator's name. The accelerator comes from
    ``--gpu`` or a spec; AMD's cards count as CUDA there.

    ```json bad --gpu gaudi2-96gb
    {"train_batch_size": 8, "aio": {"use_gds": true}}
    ```

    ```json good --gpu h100-80gb
    {"train_batch_size": 8, "aio": {"use_gds": true}}
    ```
    """
    if target.gpu is None or target.gpu.vendor not in _NOT_CUDA:
        return
    for path in (("aio", "use_gds"), ("zero_optimization", "offload_optimizer", "super_offload")):
        if file.get(*path) is True:
            yield error(
                path, f"{path[-1]} works on CUDA only, not on {target.gpu.name}: DeepSpeed asserts", help="remove it"
            )
