from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import stage, started
from dsgen.lint.mark import Mark, error
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "DS603",
    kinds=("deepspeed",),
    about=("zero_quantized_gradients",),
    since="0.10.0",
    source="deepspeed/runtime/zero/stage3.py (all2all_process_group), utils/groups.py:_get_local_all_to_all_group",
)
def quantized_gradients_that_cannot_be_exchanged(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """zero_quantized_gradients (qgZ) without reduce_scatter, or on ranks that do not fill whole nodes: the engine
    asserts.

    qgZ exchanges gradients within each node first, so the ranks must be a multiple of a node's (``--world-size``,
    ``--gpus-per-node``).

    ```json bad
    {"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true,
     "reduce_scatter": false}}
    ```

    ```json bad --world-size 12 --gpus-per-node 8
    {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}
    ```

    ```json good --world-size 16 --gpus-per-node 8
    {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}
    ```
    """
    path = ("zero_optimization", "zero_quantized_gradients")
    if file.get(*path) is not True or stage(file, target) != 3:
        return
    if file.get("zero_optimization", "reduce_scatter") is False:
        where = ("zero_optimization", "reduce_scatter")
        yield error(
            path,
            "quantized gradients need reduce_scatter: the engine asserts",
            help='write "reduce_scatter": true',
            related=((where, "it is off"),),
        )
    world, here = target.world_size, target.gpus_per_node
    if world is not None and here is not None and world > here and world % here:
        yield error(
            path,
            f"quantized gradients need whole nodes: {world} ranks are no multiple of {here} GPUs, the engine asserts",
            help=f"use {world // here * here} or {(world // here + 1) * here} ranks",
            related=started(target),
        )
