from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import engine_config, stage_of
from dsgen.lint.python.models import wraps_of
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.syncing import no_syncs
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC207",
    kinds=("python",),
    source="deepspeed/runtime/engine.py:no_sync asserts not zero_optimization_partition_gradients",
)
def no_sync_with_zero_2_or_3(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``engine.no_sync()`` at ZeRO stage 2 or 3, where gradients are partitioned in every backward pass.

    DeepSpeed has asserted against it since 0.16. It accumulates by itself: ``engine.backward`` and ``engine.step`` for
    each micro-batch are all that is needed. Stages 0 and 1 allow ``no_sync``.

    ```python bad
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for batch in loader:
        with engine.no_sync():
            engine.backward(engine(batch))
        engine.step()
    ```

    ```python good
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```
    """
    for call, model in no_syncs(file):
        for wrap in wraps_of(file, model):
            stage = stage_of(engine_config(file, wrap)) if wrap.wrapper == "deepspeed" else None
            if stage in (2, 3):
                yield error(
                    call,
                    f"no_sync() is not allowed at ZeRO stage {stage}, which reduces gradients in every backward pass: "
                    "DeepSpeed asserts",
                    help="remove it: engine.backward() and engine.step() accumulate by themselves; ZeRO 0 and 1 would "
                    "allow no_sync()",
                )
