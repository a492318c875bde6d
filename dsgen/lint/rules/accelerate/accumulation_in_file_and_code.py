import ast
from collections.abc import Iterator

from dsgen.lint.accelerate_file import AccelerateFile
from dsgen.lint.accelerate_section import SECTION
from dsgen.lint.finding import Elsewhere
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "XF201",
    kinds=("accelerate",),
    source="accelerate/accelerator.py:Accelerator.__init__ (from the environment), _prepare_deepspeed",
)
def accumulation_in_file_and_code(file: AccelerateFile, target: LintTarget) -> Iterator[Mark]:
    """gradient_accumulation_steps stands in Accelerate's file and, with another number, in the code beside it.

    The number for DeepSpeed wins, with a warning at most, so what the script works out from its own (steps, schedule)
    is off; transformers' Trainer stops. Keep one; "auto" in the DeepSpeed part takes the Accelerator's.

    ```yaml bad
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 2
      gradient_accumulation_steps: 8
    ```

    ```python beside train.py
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=4)
    ```

    ```yaml good
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 2
      gradient_accumulation_steps: 4
    ```

    ```yaml good
    distributed_type: DEEPSPEED
    deepspeed_config:
      zero_stage: 2
      gradient_accumulation_steps: auto
    ```
    """
    if target.beside is None:
        return
    where = (SECTION, "gradient_accumulation_steps")
    mine, in_file = file.get(*where), "deepspeed_config"
    if file.named is not None:
        found = file.config(target)
        mine, in_file = (found[1].get("gradient_accumulation_steps"), file.named) if found else (None, "")
        where = (SECTION, "deepspeed_config_file")
    if type(mine) is not int:
        return
    from dsgen.lint.python.names import argument, calls_of
    from dsgen.lint.python.origins import constant

    for name, code in target.beside.started_by_accelerate():
        for call in calls_of(code, "accelerate.Accelerator"):
            given = argument(call, "gradient_accumulation_steps")
            theirs = constant(code, given) if given is not None else None
            if isinstance(given, ast.expr) and type(theirs) is int and theirs != mine:
                yield error(
                    where,
                    f"gradient_accumulation_steps is {mine} in {in_file} and {theirs} in {name}: {mine} is used, and "
                    "the script's own arithmetic (steps, schedule) is off; the Trainer stops",
                    help='keep one of the two: "auto" in the DeepSpeed part takes the Accelerator\'s',
                    on="value",
                    related=((Elsewhere(name, code.locate(given)), f"{theirs} here"),),
                )
