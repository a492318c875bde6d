from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.effective import started, whole
from dsgen.lint.mark import Mark, error, info
from dsgen.lint.rule import rule
from dsgen.lint.schema_walk import is_misspelt
from dsgen.lint.target import LintTarget


@rule(
    "DS607",
    kinds=("deepspeed",),
    about=("sequence_parallel_size",),
    source="deepspeed/__init__.py:initialize (mesh_param), runtime/sequence_parallel/ulysses_sp.py",
)
def sequence_parallel_without_a_mesh(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """sequence_parallel_size without data_parallel_size: only the batch sizes are worked out with it.

    deepspeed.initialize makes the groups of Ulysses from both; one alone divides the ranks in the batch identity
    and changes nothing else, unless code hands in an mpu. Their product is the number of ranks; sequences
    (``--sequence-length``) and heads (``--model``) must be divisible by it.

    ```json bad
    {"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2}
    ```

    ```json bad --world-size 8
    {"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2, "data_parallel_size": 2}
    ```

    ```json bad --sequence-length 4095
    {"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2, "data_parallel_size": 4}
    ```

    ```json good --world-size 8 --sequence-length 4096 --model llama-2-7b
    {"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2, "data_parallel_size": 4}
    ```
    """
    size, data = whole(file.get("sequence_parallel_size")), whole(file.get("data_parallel_size"))
    if size is None or size == 1 or is_misspelt(file, target, "data_parallel_size"):
        return
    path = ("sequence_parallel_size",)
    world, length = target.world_size, target.sequence_length
    if data is None and target.since("0.15.0") and not file.has("data_parallel_size"):
        message = "sequence_parallel_size alone makes no groups: it only divides the ranks in the batch sizes"
        yield info(path, message, help="write data_parallel_size, too, unless your code hands in an mpu")
    elif data is not None and world is not None and data * size != world:
        message = f"sequence_parallel_size {size} x data_parallel_size {data} = {size * data} are not the {world} ranks"
        yield error(path, message, help=f"write data_parallel_size {world // size}", related=started(target))
    if length is not None and length % size:
        yield error(path, f"sequences of {length} tokens are not divisible over {size} ranks", help="pad to a multiple")
    heads = target.model.shapes.architecture.heads if target.model and target.model.shapes else None
    if heads is not None and heads % size:
        message = f"{heads} heads are not divisible over {size} ranks: attention cannot be split"
        yield error(path, message, help=f"write a divisor of {heads}")
