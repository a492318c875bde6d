import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.names import argument, calls_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC802",
    kinds=("python",),
    source="torch/utils/data/dataloader.py: sampler option is mutually exclusive with shuffle",
)
def sampler_with_shuffle(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``DataLoader(sampler=..., shuffle=True)``: ValueError. A ``DistributedSampler`` shuffles by itself.

    ```python bad
    from torch.utils.data import DataLoader, DistributedSampler
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset), shuffle=True)
    ```

    ```python good
    from torch.utils.data import DataLoader, DistributedSampler
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    ```
    """
    for call in calls_of(file, "torch.utils.data.DataLoader"):
        sampler, shuffle = argument(call, "sampler", 3), argument(call, "shuffle", 2)
        # A name may be None at run time; a call never is.
        if isinstance(sampler, ast.Call) and isinstance(shuffle, ast.Constant) and shuffle.value is True:
            yield error(
                shuffle,
                "a DataLoader takes a sampler or shuffle=True, not both: ValueError",
                help="drop shuffle=True; a DistributedSampler shuffles by itself",
            )
