import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import engine_config, fsdp_is_on, stage_of, trainer_config, training_arguments
from dsgen.lint.python.models import wraps
from dsgen.lint.python.names import argument
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC302",
    kinds=("python",),
    source="transformers/integrations/accelerate.py: Zero-3 is not compatible with passing a device_map",
)
def device_map_with_sharding(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``from_pretrained(device_map=...)`` under ZeRO-3 or FSDP: whole layers on devices, or every parameter cut.

    Under ZeRO-3 transformers raises ValueError. Loading is no problem of memory there: the model is sharded as it is
    loaded. With FSDP layers on several devices cannot be sharded.

    ```python bad
    from transformers import AutoModelForCausalLM, TrainingArguments
    config = {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"}
    args = TrainingArguments(output_dir="out", deepspeed=config)
    model = AutoModelForCausalLM.from_pretrained("model", device_map="auto")
    ```

    ```python good
    from transformers import AutoModelForCausalLM, TrainingArguments
    config = {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"}
    args = TrainingArguments(output_dir="out", deepspeed=config)
    model = AutoModelForCausalLM.from_pretrained("model")
    ```

    ```python bad
    from torch.distributed.fsdp import fully_shard
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("model", device_map="auto")
    for block in model.model.layers:
        fully_shard(block)
    fully_shard(model)
    ```
    """
    trainers = [call for call in training_arguments(file) if _by_trainer(file, call)]
    for call in file.tree.methods_called("from_pretrained"):
        given = argument(call, "device_map")
        plain = (isinstance(given, ast.Constant) and given.value in _SPREADS) or isinstance(given, ast.Dict)
        where = _sharded(file, call) or (trainers[0] if trainers else None)
        if given is None or not plain or where is None:
            continue
        yield error(
            given,
            "device_map places whole layers on devices, ZeRO-3 and FSDP shard every parameter: they do not go together",
            help="remove device_map (and low_cpu_mem_usage on older transformers): ZeRO-3 already shards the model "
            "while it is loaded; the same holds for FSDP",
            related=((where, "sharding is chosen here"),),
        )


_SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")


def _by_trainer(file: PythonFile, call: ast.Call) -> bool:
    return stage_of(trainer_config(file, call)) == 3 or fsdp_is_on(file, call)


def _sharded(file: PythonFile, model: ast.Call) -> ast.Call | None:
    """The call that shards the very model that is loaded."""
    for wrap in wraps(file):
        shards = wrap.wrapper in ("fsdp1", "fsdp2") or (
            wrap.wrapper == "deepspeed" and stage_of(engine_config(file, wrap)) == 3
        )
        if shards and wrap.subject is not None and any(o.node is model for o in origins(file, wrap.subject)):
            return wrap.call
    return None
