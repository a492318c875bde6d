import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import stage_of, trainer_config, training_arguments
from dsgen.lint.python.origins import Origin, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.tree import position
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_PARTS = ("get_input_embeddings()", "get_output_embeddings()")


@rule("TC303", kinds=("python",), source="deepspeed/runtime/zero/partition_parameters.py: GatheredParameters")
def zero_3_parameter_used_ungathered(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Code reads or writes a weight that ZeRO-3 has partitioned: outside of forward it is an empty tensor.

    With ``TrainingArguments(deepspeed=...)`` at stage 3, ``from_pretrained`` partitions while it loads:
    ``weight.shape[0]`` is 0 then, and writing changes nothing.

    ```python bad
    from transformers import AutoModelForCausalLM, TrainingArguments
    args = TrainingArguments(output_dir="out", deepspeed={"zero_optimization": {"stage": 3}})
    model = AutoModelForCausalLM.from_pretrained("model")
    embeddings = model.get_input_embeddings()
    rows = embeddings.weight.shape[0]
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
    chosen = [call for call in training_arguments(file) if stage_of(trainer_config(file, call)) == 3]
    if not chosen or "GatheredParameters" in file.tree.words:
        return
    for node in file.tree.nodes:
        match node:
            case ast.Attribute(value=ast.Attribute(value=module, attr="weight"), attr="shape" | "data"):
                if position(node) > position(chosen[0]) and _is_loaded(file, module):
                    yield error(
                        node,
                        "ZeRO-3 has partitioned this weight: outside of forward it is empty (its shape is [0])",
                        help="wrap the access in deepspeed.zero.GatheredParameters (modifier_rank=0 to write); for "
                        "the size "
                        "use model.config.vocab_size",
                        related=((chosen[0], "ZeRO-3 is chosen here"),),
                    )
                    return


def _is_loaded(file: PythonFile, module: ast.expr) -> bool:
    """Whether a module is the embedding of a model that ``from_pretrained`` made."""
    for origin in origins(file, module):
        match origin:
            case Origin(ast.Call(func=ast.Attribute(value=model, attr=part)), ()) if f"{part}()" in _PARTS:
                made = {o.node for o in origins(file, model)}
                if any(isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "from_pretrained" for n in made):
                    return True
    return False
