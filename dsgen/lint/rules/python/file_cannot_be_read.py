from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule("TC101", kinds=("python",), source="Python: ast.parse; PEP 263 for the encoding", unread=True)
def file_cannot_be_read(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A file that Python does not parse, so that no other rule can look at it.

    It is parsed by the grammar of the Python that runs dsgen; code for a newer one may need that one.

    ```python bad
    for batch in loader
        print(batch)
    ```

    ```python good
    for batch in loader:
        print(batch)
    ```
    """
    if file.problem is not None:
        yield error((), file.problem.message)
