import ast
import re
from collections.abc import Iterator

from dsgen.lint.mark import Mark, warning
from dsgen.lint.python.configs import engine_config, look, stage_of
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# Classes of transformers whose blocks route tokens to experts.
_MOE = re.compile(
    r"transformers\.(?:Mixtral|Qwen2Moe|Qwen3Moe|Olmoe|Dbrx|Deepseek(?:V2|V3)|PhiMoE|Phimoe|Jamba|GptOss)\w*"
)


@rule(
    "TC305", kinds=("python",), source="deepspeed/utils/z3_leaf_module.py; deepspeed/runtime/zero/leaf_module_config.py"
)
def zero_3_without_moe_leaves(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """A mixture of experts under ZeRO-3 whose expert blocks are not marked as leaves: it can hang when it runs.

    Ranks route tokens to different experts, so they gather parameters in different orders and wait for each other. A
    leaf is gathered as a whole.

    ```python bad
    import deepspeed
    from transformers import MixtralForCausalLM
    model = MixtralForCausalLM.from_pretrained("model")
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```

    ```python good
    import deepspeed
    from transformers import MixtralForCausalLM
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
    model = MixtralForCausalLM.from_pretrained("model")
    deepspeed.utils.set_z3_leaf_modules(model, [MixtralSparseMoeBlock])
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    ```
    """
    if any("z3_leaf" in word for word in file.tree.words):
        return
    for wrap in wraps_by(file, "deepspeed"):
        config = engine_config(file, wrap)
        if stage_of(config) != 3 or look(config, "zero_optimization", "leaf_module") is not None:
            continue
        for origin in origins(file, wrap.subject) if wrap.subject is not None else ():
            name = called(file, origin.node)
            if isinstance(origin.node, ast.Call) and name and _MOE.match(name):
                yield warning(
                    wrap.call,
                    "a mixture of experts under ZeRO-3: ranks that route tokens to different experts gather "
                    "parameters in "
                    "different orders, and can hang (at run time only)",
                    help="mark the sparse block as a leaf: deepspeed.utils.set_z3_leaf_modules(model, "
                    "[SparseMoeBlock]); "
                    "with accelerate deepspeed_moe_layer_cls_names; since 0.19 also zero_optimization.leaf_module",
                )
                break
