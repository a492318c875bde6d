from collections.abc import Iterator
from dataclasses import replace

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import slips
from dsgen.lint.target import LintTarget


@rule(
    "DS111",
    kinds=("deepspeed",),
    about=("wrong-type", "whole-number-with-a-point"),
    source="pydantic 2 conversion rules; deepspeed/runtime/config.py",
)
def wrong_type(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A value of another type than the key wants.

    Fractions where a whole number is wanted raise from DeepSpeed 0.15 on (before, they were cut off). Text such as
    "2" is converted in sections read by pydantic (then it is only advice to write the number) and raises elsewhere,
    often deep in the engine and without naming the key.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 4777574.4}}
    ```

    ```json bad
    {"train_batch_size": 8, "gradient_clipping": "1.0"}
    ```

    ```json good
    {"train_batch_size": 8, "gradient_clipping": 1, "zero_optimization": {"stage": 3, "sub_group_size": 1e9}}
    ```
    """
    for mark in slips(file, target, "wrong-type", "whole-number-with-a-point"):
        yield _as_yaml(mark, file) if file.dialect == "yaml" else mark


def _as_yaml(mark: Mark, file: ConfigFile) -> Mark:
    node = file.document.node(mark.where)
    if node is None or not isinstance(node.value, str) or file.document.text[node.start] in "\"'":
        return mark
    # YAML 1.1 (PyYAML): a float has a point and, in its exponent, a sign.
    message = mark.message.replace("text in quotes", "text to YAML, which reads an exponent only as in 2.0e+8")
    return replace(mark, message=message, help=mark.help and mark.help.replace(" without quotes", ""))
