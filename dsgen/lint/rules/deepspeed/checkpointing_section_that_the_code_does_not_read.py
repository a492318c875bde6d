import sys
from collections.abc import Iterator

from dsgen.lint.config_file import ConfigFile
from dsgen.lint.finding import Elsewhere
from dsgen.lint.mark import Mark, info, warning
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget

# What can be imported without a module of the project's own: none of these reads the section.
_LIBRARIES = {
    *("torch", "torchvision", "deepspeed", "transformers", "numpy", "datasets", "tokenizers", "accelerate", "peft"),
    *("tqdm", "wandb", "safetensors", "einops", "flash_attn", "huggingface_hub", "sentencepiece", "yaml", "hjson"),
}


@rule(
    "XF302",
    kinds=("deepspeed",),
    about=("activation_checkpointing",),
    source="deepspeed/runtime/activation_checkpointing/checkpointing.py:configure (the only reader of the section)",
)
def checkpointing_section_that_the_code_does_not_read(file: ConfigFile, target: LintTarget) -> Iterator[Mark]:
    """An activation_checkpointing section, and the code that loads the config never hands it to who reads it.

    DeepSpeed's engine does not read the section: ``deepspeed.checkpointing.configure(mpu, deepspeed_config=...)`` does,
    and ``deepspeed.checkpointing.checkpoint`` in the model has to be called besides. Where the code that names the
    config imports modules of its own, which may do so, this is advice.

    ```python beside train.py
    import deepspeed
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(8, 8))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds_config.json")
    ```

    ```json bad
    {"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true}}
    ```

    ```json good
    {"train_batch_size": 8, "activation_checkpointing": {"partition_activations": false}}
    ```
    """
    section = file.section("activation_checkpointing")
    if target.beside is None or target.loaded_by != "deepspeed" or not any(value is True for value in section.values()):
        return
    codes = target.beside.code
    if not codes or any("checkpointing" in code.text for _, code in codes):
        return
    from dsgen.lint.python.models import wraps_by
    from dsgen.lint.python.names import libraries

    own = {name for _, code in codes for name in libraries(code)} - _LIBRARIES - sys.stdlib_module_names
    places = [(name, code, wrap.call) for name, code in codes for wrap in wraps_by(code, "deepspeed")]
    yield (info if own else warning)(
        ("activation_checkpointing",),
        f"{' and '.join(name for name, _ in codes)} never calls deepspeed.checkpointing.configure, the only reader of "
        f"this section{' (unless ' + ', '.join(sorted(own)) + ' does)' if own else ''}: nothing is recomputed by it",
        help="call it with this config and checkpoint the blocks with deepspeed.checkpointing.checkpoint, or remove it",
        on="key",
        related=tuple((Elsewhere(name, code.locate(call)), "the config is loaded here") for name, code, call in places),
    )
