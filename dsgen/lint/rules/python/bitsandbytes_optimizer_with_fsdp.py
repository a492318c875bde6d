import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.configs import fsdp_is_on, training_arguments
from dsgen.lint.python.models import parameters_of, wrapper_of
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC505", kinds=("python",), source="bitsandbytes/optim/optimizer.py: works on whole local tensors")
def bitsandbytes_optimizer_with_fsdp(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """An 8-bit or paged optimizer of bitsandbytes on parameters that FSDP shards: it does not know shards or DTensors.

    ```python bad
    from transformers import TrainingArguments
    args = TrainingArguments(output_dir="out", optim="paged_adamw_8bit", fsdp="full_shard auto_wrap")
    ```

    ```python good
    from transformers import TrainingArguments
    args = TrainingArguments(output_dir="out", optim="adamw_torch_fused", fsdp="full_shard auto_wrap")
    ```

    ```python bad
    import bitsandbytes as bnb
    from torch.distributed.fsdp import fully_shard
    model = Net()
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
    optimizer = bnb.optim.AdamW8bit(model.parameters())
    ```
    """
    help = "use torch.optim.AdamW, or torchao's low-bit optimizers with fully_shard (not together with CPU offload)"
    message = "optimizers of bitsandbytes (8-bit, paged) do not support parameters that FSDP shards"
    for call in training_arguments(file):
        optimizer = argument(call, "optim")
        if optimizer is not None and fsdp_is_on(file, call) and _is_bitsandbytes(file, optimizer):
            yield warning(optimizer, message, help=help)
    for call in file.tree.calls:
        if (called(file, call) or "").startswith("bitsandbytes.optim.") and call.args:
            for model in parameters_of(file, call.args[0]):
                if wrapper_of(file, model) in ("fsdp1", "fsdp2"):
                    yield warning(call, message, help=help)
                    break


def _is_bitsandbytes(file: PythonFile, optimizer: ast.expr) -> bool:
    made = {o.node.value for o in origins(file, optimizer) if isinstance(o.node, ast.Constant)}
    return bool(made) and all(
        isinstance(name, str) and ("8bit" in name or "paged" in name or "bnb" in name) for name in made
    )
