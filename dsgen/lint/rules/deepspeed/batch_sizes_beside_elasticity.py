from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_SIZES = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


@rule(
    "DS203",
    kinds=("deepspeed",),
    about=("elasticity",),
    until="0.19.8",
    source="deepspeed/runtime/config.py: One or more batch related parameters were found (0.19.7)",
)
def batch_sizes_beside_elasticity(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """Batch sizes beside elastic training, which works them out itself: DeepSpeed raises.

    With elasticity.enabled the three batch sizes are not used; DeepSpeed stops at one unless
    elasticity.ignore_non_elastic_batch_info is true. Elasticity was removed in 0.19.8.

    ```json bad also=DS113 --deepspeed 0.19.7
    {"train_batch_size": 8, "elasticity": {"enabled": true, "max_train_batch_size": 64,
     "micro_batch_sizes": [2, 4]}}
    ```

    ```json good --deepspeed 0.19.7
    {"train_batch_size": 8, "gradient_clipping": 1.0}
    ```
    """
    elastic = file.section("elasticity")
    # Both are asked for their truth alone, so that 1.5 and "false" are on.
    if not elastic.get("enabled") or elastic.get("ignore_non_elastic_batch_info"):
        return
    given = [key for key in _SIZES if file.has(key)]
    if given:
        yield error(
            (given[0],),
            f"{' and '.join(given)} beside elastic training, which works the sizes out: {target.library} raises",
            help="remove the batch sizes, or switch elasticity off",
            on="key",
            related=((("elasticity", "enabled"), "elastic training is on"),),
        )
