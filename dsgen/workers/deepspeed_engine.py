"""A DeepSpeed engine around the tiny decoder, and its weights in full."""

from collections.abc import Mapping
from typing import Any

from dsgen.workers.modules import load_file
from dsgen.workers.rank import Json, Rank


def decoder(rank: Rank, job: Json) -> tuple[Any, Any]:
    """The decoder's sizes and the decoder itself, with the same weights on every rank, as from a checkpoint."""
    model_file = load_file(job["model"])
    sizes = model_file.Config.tiny()
    rank.torch.manual_seed(job["seed"])
    return sizes, model_file.Decoder(sizes)


def engine_of(rank: Rank, job: Json, model: Any, config: Any) -> Any:
    """The engine that a training script would make."""
    kind, every = job["checkpointing"]
    if kind != "none":
        model.enable_checkpointing(kind, every)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    engine, *_ = rank.deepspeed.initialize(
        model=model,
        model_parameters=trainable,
        optimizer=_optimizer(rank.torch, job["optimizer"], trainable),
        config=config,
        dist_init_required=False,
    )
    return engine


def _optimizer(torch: Any, wanted: Json | None, parameters: Any) -> Any:
    """The optimizer that a training script would pass where the config has none."""
    if wanted is None:
        return None
    return getattr(torch.optim, wanted["type"])(parameters, **wanted["params"])


def weights_of(rank: Rank, engine: Any) -> Mapping[str, Any]:
    """Trained parameters in full: the fp32 master copy where DeepSpeed keeps one, the model's own otherwise."""
    from deepspeed.utils import safe_get_full_fp32_param

    masters = _masters_without_zero(engine.optimizer)
    weights = {}
    for name, parameter in engine.module.named_parameters():
        if not parameter.requires_grad:
            continue
        full = masters.get(id(parameter))
        if full is None:
            full = safe_get_full_fp32_param(parameter)
        if full is None:
            with rank.deepspeed.zero.GatheredParameters([parameter]):
                full = parameter.detach()
        weights[name] = full.detach().clone().cpu()
    return weights


def _masters_without_zero(optimizer: Any) -> dict[int, Any]:
    """The fp32 copies of stage 0, by the id of their parameter.

    Tensor by tensor (deepspeed/runtime/fp16/unfused_optimizer.py), or with FusedAdam one after the other in a flat
    tensor per group (fused_optimizer.py).
    """
    if hasattr(optimizer, "fp32_groups_flat"):
        groups = zip(optimizer.fp16_groups, optimizer.fp32_groups_flat, strict=True)
        return {
            id(parameter): part.view(parameter.shape)
            for parameters, flat in groups
            for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True)
        }
    if not hasattr(optimizer, "fp16_groups") or not hasattr(optimizer, "fp32_groups"):
        return {}
    return {
        id(parameter): master
        for parameters, masters in zip(optimizer.fp16_groups, optimizer.fp32_groups, strict=True)
        for parameter, master in zip(parameters, masters, strict=True)
    }
