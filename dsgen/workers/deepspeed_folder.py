"""A folder with a DeepSpeed loop under trial: its own main() runs, with the trial's config and data.

What it would read from the outside (its arguments, the config, data) is given to it by exchanging the names that
train.py has for it, as far as dsgen build writes them.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsgen.workers.arguments import tiny_options
from dsgen.workers.collectives import Collectives
from dsgen.workers.deepspeed_engine import weights_of
from dsgen.workers.exchange import exchanged
from dsgen.workers.modules import load_from_folder
from dsgen.workers.rank import Rank
from dsgen.workers.subject import Observed, comparable

if TYPE_CHECKING:
    from dsgen.workers.trial import Trial


@dataclass
class _Seen:
    engine: Any = None
    losses: list[Any] = field(default_factory=list)
    norms: list[float | None] = field(default_factory=list)

    def add(self, loss: Any) -> None:
        """Returns nothing: what a forward hook returns takes the place of the output."""
        self.losses[-1] += loss.detach().float()


def observe(rank: Rank, trial: "Trial") -> Observed:
    """Trains with the code of the folder, with the config of the job, on the trial's data."""
    job, torch, seen = trial.job, rank.torch, _Seen()
    rank.events.enter("import train.py")
    train = load_from_folder(job["folder"], "train")
    model_file = sys.modules["model"]
    trial.sizes = model_file.Config.tiny()
    same_data = _same_data(rank, train, job, trial.sizes)
    config = {**json.loads(Path(job["config"]).read_text("utf-8")), "gradient_clipping": 0.0}
    collectives = Collectives(torch)
    with ExitStack() as stack:
        initialize = rank.deepspeed.initialize

        def watched_initialize(*given: Any, **named: Any) -> Any:
            rank.events.enter("read the first weights")
            weights = _weights(rank, named["model"])
            clip = trial.start(trial.sizes, lambda: comparable(torch, model_file.Decoder(trial.sizes)), weights)
            config["gradient_clipping"] = 0.0 if clip is None else clip
            rank.events.enter("deepspeed.initialize")
            engine, *rest = initialize(*given, **{**named, "config": config})
            engine.save_checkpoint = lambda *_, **__: None
            engine.register_forward_hook(lambda *call: seen.add(call[-1]))
            seen.engine = engine
            stack.enter_context(collectives.counting())
            return (engine, *rest)

        def batches(*_given: Any, **_named: Any) -> Iterator[Any]:
            for step in count():
                rank.events.enter("step", step + 1)
                if step:
                    seen.norms.append(_norm(seen.engine))
                seen.losses.append(torch.zeros((), device=rank.torch_device))
                collectives.next_step()
                yield from (tokens for tokens, _ in trial.micro_batches(step))

        options = tiny_options(train, job["steps"], job["seed"], Path(job["folder"]) / "checkpoints")
        stack.enter_context(exchanged(rank.deepspeed, initialize=watched_initialize))
        stack.enter_context(exchanged(torch.distributed, destroy_process_group=lambda *_: None))
        if job["precision"] == "fp32":
            stack.enter_context(exchanged(torch, set_default_dtype=lambda _: None))
        train.arguments, train.dataset, train.micro_batches = (lambda: options), (lambda *_: None), batches
        train.tiny_config = lambda *_: config
        train.main()
    seen.norms.append(_norm(seen.engine))
    means = torch.stack(seen.losses[: job["steps"]]) / job["accumulation"]
    torch.distributed.all_reduce(means)
    rank.events.enter("read the weights")
    after = weights_of(rank, seen.engine)
    layout = {
        "stage": int(seen.engine.zero_optimization_stage()),
        "elements": sum(value.numel() for value in trial.weights.values()),
        "same_data": same_data,
    }
    seen.engine.destroy()
    losses = [float(mean) / rank.world_size for mean in means]
    return Observed(losses, seen.norms, after, {}, collectives.steps, layout)


def _norm(engine: Any) -> float | None:
    norm = engine.get_global_grad_norm()
    return None if norm is None else float(norm)


def _weights(rank: Rank, model: Any) -> dict[str, Any]:
    """All weights in full, after making them comparable; at stage 3 they are sharded already."""
    with rank.deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0):
        comparable(rank.torch, model)
        return {name: parameter.detach().clone().float() for name, parameter in model.named_parameters()}


def _same_data(rank: Rank, train: Any, job: Any, sizes: Any) -> bool:
    """Whether the folder's own loader gives two ranks the same first micro-batches."""
    data = train.dataset(None, train.TINY_LENGTH, sizes.vocab_size)
    batches = train.micro_batches(
        data, job["micro_batch"], consumed=0, seed=job["seed"], num_workers=0, pin_memory=False
    )
    first = hashlib.sha256(b"".join(tokens.numpy().tobytes() for tokens in islice(batches, 2))).hexdigest()
    everywhere: list[Any] = [None] * rank.world_size
    rank.torch.distributed.all_gather_object(everywhere, first)
    return len(set(everywhere)) < rank.world_size
