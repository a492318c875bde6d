import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import stage_of, trainer_config, training_arguments
from dsgen.lint.python.names import argument
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC302",
    kinds=("python",),
    source="transformers/integrations/accelerate.py: Zero-3 is not compatible with passing a device_map",
)
def device_map_with_zero_3(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``from_pretrained(device_map=...)`` under ZeRO-3: whole layers on devices, or every parameter cut.

    transformers raises ValueError. Loading is no problem of memory here: ZeRO-3 shards the model as it is loaded. The
    same holds for FSDP.

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
    """
    arguments = [call for call in training_arguments(file) if stage_of(trainer_config(file, call)) == 3]
    if not arguments:
        return
    for call in file.tree.methods_called("from_pretrained"):
        given = argument(call, "device_map")
        if (isinstance(given, ast.Constant) and given.value is not None) or isinstance(given, ast.Dict):
            yield error(
                given,
                "device_map places whole layers on devices, ZeRO-3 partitions every parameter: transformers raises",
                help="remove device_map (and low_cpu_mem_usage on older transformers): ZeRO-3 already shards the model "
                "while it is loaded; the same holds for FSDP",
                related=((arguments[0], "ZeRO-3 is chosen here"),),
            )
