from collections.abc import Iterator
from typing import Any

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import engine_config
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, libraries
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC306",
    kinds=("python",),
    source="deepspeed/runtime/config_utils.py drops it; config.py fails on it; transformers fills it",
)
def auto_given_to_deepspeed_itself(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A config that says "auto" goes to ``deepspeed.initialize``, which does not know the word.

    Only transformers and accelerate replace it. DeepSpeed fails on it at the top level, and takes the default in its
    sections: ``"bf16": {"enabled": "auto"}`` is off.

    ```python bad
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```

    ```python good
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```
    """
    if (
        libraries(file) & {"transformers", "accelerate"}
        and {"HfDeepSpeedConfig", "HfTrainerDeepSpeedConfig"} & file.tree.words
    ):
        return
    for wrap in wraps_by(file, "deepspeed"):
        autos = sorted(_autos(engine_config(file, wrap), ()))
        if not autos:
            continue
        sections = [name for name in autos if "." in name]
        off = [name for name in sections if name.endswith(".enabled")]
        parts = ['DeepSpeed itself does not know the word "auto", and nobody fills it in here: ' + ", ".join(autos)]
        if len(sections) < len(autos):
            parts.append("at the top level it raises")
        if sections:
            parts.append("in a section the default is used" + (f" ({', '.join(off)} is OFF)" if off else ""))
        where = argument(wrap.call, "config", 10) or argument(wrap.call, "config_params") or wrap.call
        yield error(
            where,
            "; ".join(parts),
            help='write numbers and true or false: "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}',
        )


def _autos(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if value == "auto" and path:
        yield ".".join(path)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _autos(inner, (*path, str(key)))
