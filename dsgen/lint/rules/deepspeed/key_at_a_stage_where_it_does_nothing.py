from collections.abc import Iterator

from dsgen.lint import schema as sch
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage
from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# These have rules of their own, which say more.
_OWN_RULES = {
    ("offload_param",),
    ("offload_optimizer",),
    ("cpu_offload",),
    ("cpu_offload_param",),
    ("zenflow",),
    ("compute_grad_norm",),
    ("elastic_checkpoint",),
    ("offload_optimizer", "ratio"),
}


@rule(
    "DS307",
    kinds=("deepspeed",),
    about=("zero_optimization",),
    source="deepspeed/runtime/engine.py:_configure_zero_optimizer (what each stage's optimizer is handed)",
)
def key_at_a_stage_where_it_does_nothing(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """A key of zero_optimization that does nothing at this stage.

    Where people count on the feature (quantized communication, hierarchical partitioning, ...) this is a warning;
    leftover tuning keys are advice, shown with ``--info``.

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "zero_quantized_weights": true}}
    ```

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e8}}
    ```

    ```json good
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_quantized_weights": true}}
    ```
    """
    in_force = stage(file, target)
    if in_force is None or not file.has("zero_optimization", "stage"):
        return
    for path, schema in _zero_keys(file):
        facts, value = sch.facts(schema), file.get(*path)
        idle = in_force not in facts.get("stages", (in_force,)) and sch.exists(schema, target.deepspeed)
        if (
            not idle
            or path[1:] in _OWN_RULES
            or value in ("auto", sch.keywords(schema, target.deepspeed).get("default"))
        ):
            continue
        where = ", ".join(map(str, facts["stages"]))
        yield (warning if facts.get("feature") else info)(
            path,
            f"{path[-1]} does nothing at ZeRO stage {in_force}; it acts at stage {where}",
            help="remove it, or change the stage",
            on="key",
            related=((("zero_optimization", "stage"), f"stage {in_force}"),),
        )


def _zero_keys(file: ConfigFile) -> Iterator[tuple[tuple[str, ...], sch.Schema]]:
    zero = sch.deepspeed_schema()["properties"]["zero_optimization"]
    for path, schema in (
        (("zero_optimization",), zero),
        (("zero_optimization", "offload_optimizer"), zero["properties"]["offload_optimizer"]),
    ):
        for key in file.section(*path):
            if key in schema["properties"]:
                yield (*path, key), schema["properties"][key]
