import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, info
from dsgen.lint.python.names import argument, called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.scaling import scaling_of
from dsgen.lint.python.windows import is_one, windows
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_FUNCTION = "torch.nn.functional.cross_entropy"
_MODULE = "torch.nn.CrossEntropyLoss"


@rule("TC219", kinds=("python",), source="torch.nn.functional.cross_entropy: mean over targets that are not ignored")
def token_means_averaged(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """Means over the tokens of each micro-batch are averaged, although micro-batches hold different numbers of tokens.

    Advice (``--info``): with ``ignore_index`` a micro-batch of few target tokens weighs as much as one of many. Sum the
    losses of tokens, and divide by the tokens of the whole window (of all ranks). Where every sequence is full, nothing
    changes.

    ```python bad
    import torch
    import torch.nn.functional as F
    optimizer = torch.optim.AdamW(model.parameters())
    for i, (ids, labels) in enumerate(loader):
        loss = F.cross_entropy(model(ids), labels, ignore_index=-100)
        (loss / 8).backward()
        if (i + 1) % 8 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    ```

    ```python good
    import torch
    import torch.nn.functional as F
    optimizer = torch.optim.AdamW(model.parameters())
    for window in windows(loader, 8):
        tokens = sum((labels != -100).sum() for ids, labels in window)
        for ids, labels in window:
            loss = F.cross_entropy(model(ids), labels, ignore_index=-100, reduction="sum")
            (loss / tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    ```
    """
    seen = set()
    for window in windows(file):
        scaling = scaling_of(file, window.backward.loss, window.size)
        for call in scaling.calls:
            if call not in seen and not is_one(file, window.size) and _is_mean_of_some(file, call):
                seen.add(call)
                yield info(
                    call,
                    "a mean over the tokens of each micro-batch, averaged over micro-batches: those with few target "
                    "tokens "
                    "weigh too much",
                    help="with varying numbers of target tokens, sum the token losses and divide by the token count "
                    "of the "
                    "whole window (all ranks); with full sequences there is no difference",
                )


def _is_mean_of_some(file: PythonFile, call: ast.Call) -> bool:
    calls = [call] if called(file, call) == _FUNCTION else []
    calls += [
        o.node for o in origins(file, call.func) if called(file, o.node) == _MODULE and isinstance(o.node, ast.Call)
    ]
    return any(argument(c, "ignore_index") is not None and argument(c, "reduction") is None for c in calls)
