from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.configs import engine_config, stage_of
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

_MODULES = ("deepspeed.pipe.PipelineModule", "deepspeed.PipelineModule", "deepspeed.runtime.pipe.module.PipelineModule")


@rule("TC304", kinds=("python",), source="deepspeed/runtime/pipe/engine.py: asserts zero_optimization_stage < 2")
def pipeline_with_zero_2_or_3(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A ``PipelineModule`` with ZeRO stage 2 or 3: the pipeline engine adds up whole gradients, and asserts.

    ```python bad
    import deepspeed
    from deepspeed.pipe import PipelineModule
    net = PipelineModule(layers=layers, num_stages=4)
    config = {"train_batch_size": 64, "zero_optimization": {"stage": 2}}
    engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
    ```

    ```python good
    import deepspeed
    from deepspeed.pipe import PipelineModule
    net = PipelineModule(layers=layers, num_stages=4)
    config = {"train_batch_size": 64, "zero_optimization": {"stage": 1}}
    engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
    ```
    """
    for wrap in wraps_by(file, "deepspeed"):
        stage = stage_of(engine_config(file, wrap))
        made = (
            {called(file, origin.node) for origin in origins(file, wrap.subject)} if wrap.subject is not None else set()
        )
        if stage in (2, 3) and made and made <= set(_MODULES):
            yield error(
                wrap.call,
                f"a PipelineModule does not work with ZeRO stage {stage}: the pipeline engine adds up whole "
                f"gradients over "
                "micro-batches, and asserts a stage below 2",
                help="use ZeRO stage 0 or 1 with pipelines (overlap_comm is switched off by the engine there)",
            )
