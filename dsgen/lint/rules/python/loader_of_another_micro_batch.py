import ast
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.config_places import related
from dsgen.lint.python.configs import engine_config, look
from dsgen.lint.python.models import receiver, wrapper_of, wraps_by
from dsgen.lint.python.names import argument, calls_of
from dsgen.lint.python.origins import constant, origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "XF202",
    kinds=("python",),
    source="deepspeed/runtime/engine.py (train_micro_batch_size_per_gpu is not compared with what comes)",
)
def loader_of_another_micro_batch(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """The ``DataLoader`` that feeds the engine has another batch size than train_micro_batch_size_per_gpu.

    DeepSpeed does not compare them: it trains on what comes, while train_batch_size, throughput and whatever else
    counts samples go by the config.

    ```python bad
    import deepspeed
    from torch.utils.data import DataLoader
    config = {"train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "AdamW", "params": {}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    loader = DataLoader(data, batch_size=8)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```

    ```python good
    import deepspeed
    from torch.utils.data import DataLoader
    config = {"train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "AdamW", "params": {}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    loader = DataLoader(data, batch_size=8)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```
    """
    engines = wraps_by(file, "deepspeed")
    if len(engines) != 1:
        return
    config, given = engine_config(file, engines[0]), argument(engines[0].call, "config", 10)
    micro = look(config, "train_micro_batch_size_per_gpu")
    if type(micro) is not int:
        return
    for loader in _feeding(file):
        size = argument(loader, "batch_size", 1)
        stated = constant(file, size) if size is not None else None
        if size is not None and type(stated) is int and stated != micro:
            path = ("train_micro_batch_size_per_gpu",)
            yield warning(
                size,
                f"batches of {stated} come to an engine whose train_micro_batch_size_per_gpu is {micro}: DeepSpeed "
                "trains on them and counts by the config",
                help=f"write {stated} in the config, or batch_size={micro} here",
                related=related(file, given, "deepspeed", path, f"{micro} here"),
            )


def _feeding(file: PythonFile) -> list[ast.Call]:
    """The loaders over which a loop goes that calls ``backward`` on the engine."""
    made = set(calls_of(file, "torch.utils.data.DataLoader"))
    found = []
    for loop in (node for node in file.tree.nodes if isinstance(node, ast.For)):
        inside = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
        if any(_is_backward(file, call) for call in inside):
            found += [origin.node for origin in origins(file, loop.iter) if origin.node in made]
    return [call for call in dict.fromkeys(found) if isinstance(call, ast.Call)]


def _is_backward(file: PythonFile, call: ast.Call) -> bool:
    owner = receiver(call)
    is_call = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    return is_call and owner is not None and wrapper_of(file, owner) == "deepspeed"
