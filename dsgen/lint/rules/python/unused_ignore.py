from collections.abc import Iterator

from dsgen.lint.ignores import unused
from dsgen.lint.mark import Mark
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC102", kinds=("python",), source="dsgen/lint/ignores.py", last=True)
def unused_ignore(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A ``dsgen: ignore[CODE]`` that hides nothing.

    It stands at the end of the line that it is for, or alone above it. Such a comment outlives its reason: what it
    would hide next is something that nobody has looked at.

    ```python bad
    import torch

    torch.manual_seed(0)  # dsgen: ignore[TC201]
    ```

    ```python fixed
    import torch

    torch.manual_seed(0)
    ```

    ```python good
    import torch

    torch.manual_seed(0)
    print("# dsgen: ignore[TC201]")
    ```
    """
    yield from unused(file.ignores)
