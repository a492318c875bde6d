import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import literal, training_arguments
from dsgen.lint.python.models import receiver
from dsgen.lint.python.names import argument, called, calls_of
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")


@rule(
    "TC610",
    kinds=("python",),
    source="torch/utils/checkpoint.py: reentrant needs an input that requires grad; "
    "tests/conformance/test_training_claims.py",
)
def reentrant_checkpoint_of_a_frozen_model(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Reentrant checkpointing of a model whose embeddings are frozen (LoRA): blocks get no gradients.

    A reentrant checkpoint hands gradients on only where one of its inputs asks for them; behind frozen embeddings none
    does. The arguments of the Trainer win over what the model was told.

    ```python bad
    from peft import LoraConfig, get_peft_model
    from transformers import Trainer, TrainingArguments
    model = get_peft_model(base, LoraConfig(r=8))
    args = TrainingArguments(
        output_dir="out", gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": True},
    )
    Trainer(model=model, args=args, train_dataset=data).train()
    ```

    ```python good
    from peft import LoraConfig, get_peft_model
    from transformers import Trainer, TrainingArguments
    model = get_peft_model(base, LoraConfig(r=8))
    args = TrainingArguments(
        output_dir="out", gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False},
    )
    Trainer(model=model, args=args, train_dataset=data).train()
    ```
    """
    if {"enable_input_require_grads", "prepare_model_for_kbit_training"} & file.tree.words:
        return
    for call in file.tree.methods_called("gradient_checkpointing_enable"):
        model, options = receiver(call), argument(call, "gradient_checkpointing_kwargs", 0)
        if model is not None and options is not None and _is_adapted(file, model) and _is_reentrant(file, options):
            yield _mark(options, call)
    for trainer in calls_of(file, *_TRAINERS):
        model, args = argument(trainer, "model", 0), argument(trainer, "args", 1)
        if model is None or args is None or not _is_adapted(file, model):
            continue
        made = {origin.node for origin in origins(file, args)}
        for call in training_arguments(file):
            own = argument(call, "gradient_checkpointing")
            if call not in made or not (isinstance(own, ast.Constant) and own.value is True):
                continue
            options = argument(call, "gradient_checkpointing_kwargs")
            if options is not None and _is_reentrant(file, options):
                yield _mark(options, trainer)


def _mark(options: ast.expr, frozen: ast.Call) -> Mark:
    return error(
        options,
        "reentrant checkpointing behind frozen embeddings: the blocks' inputs ask for no gradient, so their adapters "
        "get none",
        help="gradient_checkpointing_kwargs={'use_reentrant': False}, or model.enable_input_require_grads()",
        related=((frozen, "the model is frozen but for its adapters"),),
    )


def _is_reentrant(file: PythonFile, options: ast.expr) -> bool:
    value = literal(file, options)
    return isinstance(value, dict) and value.get("use_reentrant") is True


def _is_adapted(file: PythonFile, model: ast.expr) -> bool:
    made = origins(file, model)
    return any(called(file, origin.node) in ("peft.get_peft_model", "peft.mapping.get_peft_model") for origin in made)
