import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import Wrap, wraps_by
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import Origin, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.sharding import has_policy, keeps_parameters
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC603",
    kinds=("python",),
    source="torch/distributed/fsdp/_flat_param.py; tests/conformance/test_training_claims.py",
)
def frozen_and_trained_in_one_fsdp1_unit(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Frozen and trained parameters in one FSDP1 unit, without ``use_orig_params=True``: ValueError.

    FSDP1 flattens a unit into one parameter, which is trained or not. LoRA puts trained adapters into every block;
    without a policy the whole model is one unit.

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

    ```python bad also=TC604
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = Net()
    model.embeddings.requires_grad_(False)
    model = FSDP(model)
    ```
    """
    for wrap in wraps_by(file, "fsdp1"):
        if wrap.subject is None or keeps_parameters(file, wrap) is not False:
            continue
        adapted = any(called(file, origin.node) in _PEFT for origin in origins(file, wrap.subject))
        together = not _separates(file, argument(wrap.call, "auto_wrap_policy", 4))
        what = None
        if adapted and together:
            what = "LoRA mixes frozen and trained parameters in one FSDP1 unit"
        elif not has_policy(wrap) and _freezes_a_part(file, wrap):
            what = "frozen and trained parameters are in one FSDP1 unit (without a policy the whole model is one)"
        if what is not None:
            yield error(
                wrap.call,
                f"{what}, and use_orig_params is False (the default): ValueError",
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


def _freezes_a_part(file: PythonFile, wrap: Wrap) -> bool:
    """``model.part.requires_grad_(False)`` before the wrap, and the rest left as it is."""
    wholes = {o.node for o in origins(file, wrap.subject) if not o.steps} if wrap.subject is not None else set()
    for call in file.tree.methods_called("requires_grad_"):
        given = call.args[0] if call.args else None
        off = isinstance(given, ast.Constant) and given.value is False
        if off and isinstance(call.func, ast.Attribute) and file.tree.precedes(call, wrap.call):
            if file.tree.guards(call):
                continue
            for origin in origins(file, call.func.value):
                if origin.node in wholes and _is_attribute(origin) and not _thaws_all(file, wholes):
                    return True
    return False


def _is_attribute(origin: Origin) -> bool:
    return bool(origin.steps) and all(isinstance(step, str) and step.isidentifier() for step in origin.steps)


def _thaws_all(file: PythonFile, wholes: set[ast.AST]) -> bool:
    """Whether the whole model is frozen or thawed at once somewhere, so that parts do not tell the end."""
    for call in file.tree.methods_called("requires_grad_"):
        if isinstance(call.func, ast.Attribute):
            made = origins(file, call.func.value)
            if any(o.node in wholes and not o.steps for o in made):
                return True
    return any(isinstance(node, ast.Attribute) and node.attr == "requires_grad" for node in file.tree.nodes)
