import json
from collections.abc import Iterator

from dsgen.lint import schema as sch
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, info
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS118",
    kinds=("deepspeed",),
    source="schemas/deepspeed.schema.json: the defaults by version",
)
def default_that_differs_between_versions(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key that is left to its default, which another DeepSpeed has changed (advice, shown with ``--info``).

    Told where nobody says which DeepSpeed it is: the same file trains differently after an upgrade. Write the value
    that you mean; ``dsgen upgrade`` tells what changes and makes the edits.

    ```json bad --loaded-by deepspeed
    {"train_batch_size": 8, "zero_optimization": {"stage": 2}}
    ```

    ```json good --loaded-by deepspeed
    {"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 1.0}
    ```
    """
    by_accelerate = file.dialect == "yaml" and target.loaded_by == "accelerate"  # which fills its own defaults in
    if target.stated or target.loaded_by is None or file.dialect == "python" or by_accelerate:
        return
    for path, schema in _flipping(file):
        defaults = sch.facts(schema)["defaults"]
        if file.has(*path) or not sch.exists(schema, target.deepspeed):
            continue
        now = sch.by_version(defaults, target.deepspeed)
        told = ", ".join(f"{json.dumps(value)} {_since(first)}" for first, value in defaults.items())
        yield info(
            path,
            f"{'.'.join(path)} is left to its default, here {json.dumps(now)}: it is {told}",
            help="write the value that you mean",
            on="key",
        )


def _flipping(file: ConfigFile) -> Iterator[tuple[tuple[str, ...], sch.Schema]]:
    top = sch.deepspeed_schema()["properties"]
    zero = top["zero_optimization"]["properties"]
    yield ("gradient_clipping",), top["gradient_clipping"]
    if file.get("bf16", "enabled") is True:
        yield ("bf16", "check_grad_overflow"), top["bf16"]["properties"]["check_grad_overflow"]
    for part in ("offload_optimizer", "offload_param"):
        if file.get("zero_optimization", part, "device") in ("cpu", "nvme"):
            yield ("zero_optimization", part, "pin_memory"), zero[part]["properties"]["pin_memory"]


def _since(version: str) -> str:
    return "at first" if version == "0" else f"since {version}"
