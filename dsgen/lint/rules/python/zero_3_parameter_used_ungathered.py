import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import engine_config, stage_of, trainer_config, training_arguments
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import position
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_PARTS = ("get_input_embeddings", "get_output_embeddings")


@rule("TC303", kinds=("python",), source="deepspeed/runtime/zero/partition_parameters.py: GatheredParameters")
def zero_3_parameter_used_ungathered(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Code reads or writes a weight that ZeRO-3 has partitioned: outside of forward it is an empty tensor.

    With ``TrainingArguments(deepspeed=...)`` at stage 3, ``from_pretrained`` partitions while it loads, as
    ``deepspeed.zero.Init`` does, and ``deepspeed.initialize`` at the latest: ``weight.shape[0]`` is 0 then, and writing
    changes nothing.

    ```python bad
    from transformers import AutoModelForCausalLM, TrainingArguments
    args = TrainingArguments(output_dir="out", deepspeed={"zero_optimization": {"stage": 3}})
    model = AutoModelForCausalLM.from_pretrained("model")
    embeddings = model.get_input_embeddings()
    rows = embeddings.weight.shape[0]
    ```

    ```python bad
    import deepspeed
    with deepspeed.zero.Init():
        model = Net()
    model.head.weight.data.zero_()
    ```

    ```python good
    import deepspeed
    from transformers import AutoModelForCausalLM, TrainingArguments
    args = TrainingArguments(output_dir="out", deepspeed={"zero_optimization": {"stage": 3}})
    model = AutoModelForCausalLM.from_pretrained("model")
    embeddings = model.get_input_embeddings()
    with deepspeed.zero.GatheredParameters(embeddings.weight, modifier_rank=0):
        embeddings.weight.data[-1] = embeddings.weight.data[:-1].mean(dim=0)
    rows = model.config.vocab_size
    ```
    """
    if "GatheredParameters" in file.tree.words:
        return
    made = dict(_partitioned(file))
    for node in file.tree.nodes:
        match node:
            case ast.Attribute(value=ast.Attribute(value=module, attr="weight" | "bias"), attr="shape" | "data"):
                since = next((made[model] for model in _models(file, module) if model in made), None)
                if since is not None and file.tree.precedes(since, node):
                    yield error(
                        node,
                        "ZeRO-3 has partitioned this weight: outside of forward it is empty (its shape is [0])",
                        help="wrap the access in deepspeed.zero.GatheredParameters (modifier_rank=0 to write); for the "
                        "size use model.config.vocab_size",
                        related=((since, "ZeRO-3 is chosen here"),),
                    )
                    return


def _partitioned(file: PythonFile) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What makes a model that ZeRO-3 partitions, and from where on."""
    for call in training_arguments(file):
        if stage_of(trainer_config(file, call)) == 3:
            for model in file.tree.methods_called("from_pretrained"):
                if position(model) > position(call):
                    yield model, call
    for wrap in wraps_by(file, "deepspeed"):
        if stage_of(engine_config(file, wrap)) == 3 and wrap.subject is not None:
            for origin in origins(file, wrap.subject):
                yield origin.node, wrap.call
    for node in file.tree.nodes:
        if isinstance(node, ast.With) and any(called(file, item.context_expr) == _INIT for item in node.items):
            for model in (call for call in file.tree.calls if file.tree.within(call, node)):
                yield model, node.items[0].context_expr


_INIT = "deepspeed.zero.Init"


def _models(file: PythonFile, module: ast.expr) -> list[ast.AST]:
    """What makes the model that a module is part of: ``model.head``, ``model.get_input_embeddings()``."""
    found: list[ast.AST] = []
    for origin in origins(file, module):
        match origin.node:
            case ast.Call(func=ast.Attribute(value=model, attr=part)) if part in _PARTS and not origin.steps:
                found.extend(o.node for o in origins(file, model))
            case ast.Call() if origin.steps and all(isinstance(step, str) for step in origin.steps):
                found.append(origin.node)
    return found
