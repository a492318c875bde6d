"""Makes a model on the meta device, where it costs no memory, and writes what it consists of."""

import sys
from importlib import import_module
from typing import Any

from dsgen.workers.wire import Events, open_worker

_SIZES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "n_embed", "dim"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "kv_heads": ("num_key_value_heads", "n_kv_heads", "num_kv_heads"),
    "head_dim": ("head_dim",),
    "intermediate": ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size"),
    "vocab": ("vocab_size",),
    "max_positions": ("max_position_embeddings", "n_positions", "max_seq_len"),
}
"""Sizes, by the names that configurations have for them."""


def main() -> None:
    """One ``model`` event; ``missing`` where a library is, ``error`` where the model can't be made."""
    request, events = open_worker()
    for library in ("torch", "transformers") if request["config"] else ("torch",):
        events.enter(f"import {library}")
        try:
            import_module(library)
        except ModuleNotFoundError as error:
            if error.name == library:
                events.write("missing", library=library)
                return
            events.fail(error)
    try:
        events.write("model", **_measured(request, events))
    except (Exception, SystemExit) as error:
        events.fail(error)


def _measured(request: dict[str, Any], events: Events) -> dict[str, Any]:
    import torch

    # Behind what is installed, so that no file of the user's shadows a library.
    sys.path.extend(request["paths"])
    if request["config"]:
        events.enter(f"make the model of {request['config']}")
        with torch.device("meta"):
            model = _of_config(request["config"])
    else:
        module, _, name = request["factory"].partition(":")
        events.enter(f"import {module}")
        function = getattr(import_module(module), name)
        events.enter(f"call {request['factory']}")
        with torch.device("meta"):
            model = function()
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a {type(model).__name__} came back, not a torch.nn.Module")
    events.enter("count")
    return _counted(torch, model)


def _of_config(folder: str) -> Any:
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    names = getattr(config, "architectures", None) or [""]
    named = getattr(transformers, str(names[0]), None)
    if named is not None and hasattr(named, "_from_config"):
        return named._from_config(config)
    auto: Any = transformers.AutoModel
    return auto.from_config(config, trust_remote_code=False)


def _counted(torch: Any, model: Any) -> dict[str, Any]:
    blocks = _blocks(torch, model)
    embeddings = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    tokens = max(embeddings, key=lambda module: module.num_embeddings, default=None)
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    config = getattr(model, "config", None)
    inner = getattr(config, "text_config", None) or config
    return {
        "class": type(model).__name__,
        "model_type": str(getattr(config, "model_type", "")),
        "parameters": _size(model),
        "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "tied": len(names) > sum(1 for _ in model.parameters()),
        "blocks": [_size(block) for block in blocks],
        "block_class": type(blocks[0]).__name__ if blocks else "",
        "linears": [
            [name, module.out_features, module.in_features]
            for name, module in (blocks[0].named_modules() if blocks else ())
            if isinstance(module, torch.nn.Linear)
        ],
        "embedding": [tokens.num_embeddings, tokens.embedding_dim] if tokens is not None else None,
        "sizes": {field: size for field, keys in _SIZES.items() if (size := _first(inner, keys)) is not None},
    }


def _first(config: Any, keys: tuple[str, ...]) -> int | None:
    values = [getattr(config, key, None) for key in keys]
    return next((value for value in values if type(value) is int and value > 0), None)


def _blocks(torch: Any, model: Any) -> list[Any]:
    """The list of equal modules that has most of the parameters."""
    lists = [list(module) for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module) > 0]
    alike = [blocks for blocks in lists if len({type(block) for block in blocks}) == 1]
    return max(alike, key=lambda blocks: sum(map(_size, blocks)), default=[])


def _size(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


if __name__ == "__main__":
    main()
