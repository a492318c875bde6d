"""A folder with FSDP2 code under trial: its own train() runs, from sharding to the last step."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsgen.workers.collectives import Collectives
from dsgen.workers.exchange import exchanged
from dsgen.workers.fsdp2_folder import Folder
from dsgen.workers.rank import Rank
from dsgen.workers.subject import Observed, comparable, made

if TYPE_CHECKING:
    from dsgen.workers.trial import Trial


def observe(rank: Rank, trial: "Trial") -> Observed:
    """Trains with the code of the folder, on the trial's data and clipping at its threshold."""
    job, torch = trial.job, rank.torch
    folder = Folder(rank, job["folder"])
    trial.sizes = folder.sizes
    collectives = Collectives(torch)
    with ExitStack() as stack:
        _prepare(torch, folder, job, stack)

        def settle() -> None:
            comparable(torch, folder.seen.model)
            own = getattr(folder.train, "CLIPPING", None)
            weights = folder.weights(frozen_too=True)
            clip = trial.start(folder.sizes, lambda: comparable(torch, folder.plain_model()), weights, own)
            if own is None:
                trial.clip = None  # this code does not clip
            else:
                folder.train.CLIPPING = clip
            stack.enter_context(collectives.counting())

        folder.before_first_step = settle
        folder.before_step = collectives.next_step
        folder.run(job["steps"], job["seed"], Path(job["folder"]) / "checkpoints", trial.micro_batches)
    rank.events.enter("read the weights")
    means = torch.stack(folder.seen.losses)
    torch.distributed.all_reduce(means)
    seen = folder.seen
    layout = {
        "units": seen.units,
        "replicated": _is_replicated(seen.model),
        "reduce_each": bool(getattr(folder.train, "REDUCE_EACH_MICRO_BATCH", False)),
    }
    return Observed(
        [float(mean) for mean in means.cpu()],
        seen.norms,
        folder.weights(),
        made(seen.optimizer),
        collectives.steps,
        layout,
    )


def _prepare(torch: Any, folder: Folder, job: Any, stack: ExitStack) -> None:
    """What the trial asks for otherwise than the code has it."""
    if hasattr(folder.train, "rate_at"):
        stack.enter_context(exchanged(folder.train, rate_at=lambda *_: 1.0))
    if job["precision"] == "fp32" and hasattr(folder.sharding, "MixedPrecisionPolicy"):
        from torch.distributed.fsdp import MixedPrecisionPolicy

        # Not the policy without types: weights that are frozen may be kept in bf16.
        fp32 = MixedPrecisionPolicy(param_dtype=torch.float32, reduce_dtype=torch.float32)
        stack.enter_context(exchanged(folder.sharding, MixedPrecisionPolicy=lambda **_: fp32))
    if job["optimizer"] is not None:
        kind, arguments = getattr(torch.optim, job["optimizer"]["type"]), job["optimizer"]["params"]
        names = ("AdamW", "Adam", "SGD")
        stack.enter_context(
            exchanged(torch.optim, **{name: lambda parameters, **_: kind(parameters, **arguments) for name in names})
        )


def _is_replicated(model: Any) -> bool:
    """Whether the mesh has a dimension to replicate over (HSDP), be it of one group only."""
    meshes = (getattr(parameter, "device_mesh", None) for parameter in model.parameters())
    return any(mesh is not None and mesh.ndim > 1 for mesh in meshes)
