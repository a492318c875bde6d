"""Plans for FSDP2 and the folders that are written from them."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dsgen.facts.gpus import find_gpu
from dsgen.formats import writer
from dsgen.formats.values import Written
from dsgen.hardware import Hardware
from dsgen.plan import Checkpointing, Plan
from dsgen.planner.buckets import buckets_of
from dsgen.shapes.resolve import shapes_of
from dsgen.shapes.values import Shapes
from dsgen.spec.values import HardwareSpec, Method, ModelSpec, Optimizer, Scheduler, Spec, Training
from dsgen.target import Target

COSINE = Scheduler(type="cosine", warmup_steps=2, total_steps=20, min_lr_ratio=0.1)
ADAMW = Optimizer(type="adamw", lr=1e-3, weight_decay=0.1)


def shapes(model: str = "llama-3.1-8b", method: Method | None = None) -> Shapes:
    training = Training(method=method or Method())
    return shapes_of(
        Spec(file="spec.yaml", model=ModelSpec(name=model), hardware=HardwareSpec(gpu="t4"), training=training)
    )


def hardware(world: int) -> Hardware:
    gpu = find_gpu("h100-80gb-sxm")
    assert gpu is not None
    return Hardware(gpu=gpu, gpus_per_node=world, nodes=1, memory_budget=gpu.memory, budget_reason="all of the card")


def plan(model: Shapes, world: int, **changes: Any) -> Plan:
    """fp32, everything sharded, nothing recomputed, two sequences at a time; with ``changes``."""
    base = Plan(
        world_size=world,
        gpus_per_node=world,
        zero_stage=3,
        precision="fp32",
        checkpointing=Checkpointing("none"),
        micro_batch=2,
        accumulation=1,
        buckets=buckets_of(model, world),
    )
    return replace(base, **changes)


def written(
    world: int,
    *,
    model: str = "llama-3.1-8b",
    optimizer: Optimizer = ADAMW,
    scheduler: Scheduler | None = COSINE,
    clipping: float = 1.0,
    method: Method | None = None,
    sequence_length: int = 4096,
    loaded_by: str = "deepspeed",
    factory: str | None = None,
    folder: bool = True,
    **changes: Any,
) -> Written:
    """What the writer makes of such a plan."""
    training = Training(optimizer=optimizer, scheduler=scheduler, gradient_clipping=clipping, method=method or Method())
    about = shapes(model, method)
    if factory is not None:
        about = replace(about, factory=factory, architecture=replace(about.architecture, vocab=256))
    target = Target(format="fsdp2", loaded_by=loaded_by)  # type: ignore[arg-type]
    made = writer("fsdp2").write(
        plan(about, world, **changes), about, training, target, hardware(world), sequence_length, folder=folder
    )
    assert isinstance(made, Written)
    return made


def save(made: Written, folder: Path) -> None:
    for name, text in made.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(0o755 if name in made.executable else 0o644)


def job(
    name: str,
    folder: Path,
    data: Path,
    world: int,
    *,
    steps: int = 5,
    masked: bool = False,
    resume_at: int = 0,
    loss_scale: float = 0,
    weights: bool = False,
    **asked: Any,
) -> dict[str, Any]:
    """A folder and what tests/formats/fsdp2/train_folders.py needs to know of it."""
    save(written(world, **asked), folder)
    optimizer = asdict(asked.get("optimizer", ADAMW))
    kind = optimizer["type"]
    wanted = ("lr", "momentum", "weight_decay") if kind == "sgd" else ("lr", "betas", "eps", "weight_decay")
    schedule = asked.get("scheduler", COSINE)
    return {
        "name": name,
        "folder": str(folder),
        "data": str(data),
        "steps": steps,
        "masked": masked,
        "resume_at": resume_at,
        "loss_scale": loss_scale,
        "weights": str(folder / "published") if weights else None,
        "clipping": asked.get("clipping", 1.0),
        "optimizer": {key: optimizer[key] for key in ("type", *wanted)},
        "schedule": None if schedule is None else asdict(schedule),
    }
