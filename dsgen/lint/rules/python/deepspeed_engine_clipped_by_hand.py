from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.gradients import torch_clips
from dsgen.lint.python.models import parameters_of, wraps_by
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import updates
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC301",
    kinds=("python",),
    source="deepspeed/runtime/engine.py: gradient_clipping; stage_1_and_2.py and stage3.py clip in step()",
)
def deepspeed_engine_clipped_by_hand(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``clip_grad_norm_`` on the parameters of a DeepSpeed engine: the engine steps with gradients of its own.

    With ZeRO the real gradients lie in the engine's partitioned buffers, so at stages 2 and 3 the clip has no effect,
    and at stages 0 and 1 a wrong one under accumulation. The engine clips in ``step()``, by ``gradient_clipping``.

    ```python bad
    import deepspeed
    import torch
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds_config.json")
    for batch in loader:
        engine.backward(engine(batch))
        torch.nn.utils.clip_grad_norm_(engine.parameters(), 1.0)
        engine.step()
    ```

    ```python good
    import deepspeed
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for batch in loader:
        engine.backward(engine(batch))
        engine.step()
    ```
    """
    engines = wraps_by(file, "deepspeed")
    if not engines or not any(update.what == "deepspeed" for update in updates(file)):
        return
    calls = {wrap.call for wrap in engines}
    given = {origin for wrap in engines if wrap.subject is not None for origin in origins(file, wrap.subject)}
    for call in torch_clips(file):
        for model in parameters_of(file, call.args[0]) if call.args else ():
            owned = any(o.node in calls and o.steps[:1] == (0,) for o in origins(file, model))
            if owned or origins(file, model) & given:
                yield error(
                    call,
                    "the DeepSpeed engine steps with gradients of its own: clipping the module's has no effect, or a "
                    "wrong "
                    "one",
                    help='remove it, and set "gradient_clipping" in the DeepSpeed config: the engine clips in step()',
                )
                break
