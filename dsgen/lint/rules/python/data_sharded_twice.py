import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC804", kinds=("python",), source="accelerate/data_loader.py:prepare_data_loader shards the batch sampler")
def data_sharded_twice(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A loader with a ``DistributedSampler`` goes through ``accelerator.prepare``, which shards it once more.

    With W processes each then sees a W-th of a W-th of the data; the rest is never used, without a word.

    ```python bad
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, DistributedSampler
    accelerator = Accelerator()
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    model, loader = accelerator.prepare(model, loader)
    ```

    ```python good
    from accelerate import Accelerator
    from torch.utils.data import DataLoader
    accelerator = Accelerator()
    loader = DataLoader(dataset, shuffle=True)
    model, loader = accelerator.prepare(model, loader)
    ```
    """
    for wrap in wraps_by(file, "accelerate"):
        for given in wrap.call.args:
            for origin in origins(file, given) if not isinstance(given, ast.Starred) else ():
                if called(file, origin.node) == "torch.utils.data.DataLoader" and isinstance(origin.node, ast.Call):
                    sampler = argument(origin.node, "sampler", 3)
                    if sampler is not None and _is_distributed(file, sampler):
                        yield error(
                            given,
                            "this loader is sharded by a DistributedSampler already; prepare() shards it once more, "
                            "so most "
                            "of the data is never used",
                            help="leave the sampler to prepare(): DataLoader(dataset, shuffle=True)",
                            related=((sampler, "sharded here"),),
                        )


def _is_distributed(file: PythonFile, sampler: ast.expr) -> bool:
    made = origins(file, sampler)
    return bool(made) and all(called(file, o.node) == "torch.utils.data.DistributedSampler" for o in made)
