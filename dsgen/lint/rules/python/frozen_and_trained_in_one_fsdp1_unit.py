import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import keeps_parameters
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Policies that can put adapters into units of their own.
_FINE = ("peft.utils.other.fsdp_auto_wrap_policy", "peft.utils.fsdp_auto_wrap_policy")


@rule("TC603", kinds=("python",), source="torch/distributed/fsdp/_flat_param.py: requires_grad must be uniform")
def frozen_and_trained_in_one_fsdp1_unit(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """LoRA adapters and frozen weights in one FSDP1 unit, without ``use_orig_params=True``: ValueError.

    FSDP1 flattens a unit into one parameter, which is trained or not. LoRA puts trained adapters into every block.

    ```python bad
    from peft import LoraConfig, get_peft_model
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj"]))
    model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({Block}))
    ```

    ```python good
    from peft import LoraConfig, get_peft_model
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj"]))
    model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True)
    ```
    """
    for wrap in wraps_by(file, "fsdp1"):
        if wrap.subject is None or keeps_parameters(file, wrap) is not False:
            continue
        adapted = any(called(file, origin.node) in _PEFT for origin in origins(file, wrap.subject))
        if adapted and not _separates(file, argument(wrap.call, "auto_wrap_policy", 4)):
            yield error(
                wrap.call,
                "LoRA mixes frozen and trained parameters in one FSDP1 unit, and use_orig_params is False (the "
                "default): ValueError",
                help="pass use_orig_params=True, wrap the adapters in units of their own, or use fully_shard (FSDP2), "
                "which has no such limit",
            )


_PEFT = ("peft.get_peft_model", "peft.mapping.get_peft_model", "peft.PeftModel.from_pretrained")


def _separates(file: PythonFile, policy: ast.expr | None) -> bool:
    """Only policies that name block classes are known to keep adapters and weights together."""
    if policy is None:
        return False
    names = {called(file, origin.node) for origin in origins(file, policy)}
    return names != {"torch.distributed.fsdp.wrap.ModuleWrapPolicy"}
