"""Models and layouts over which formula and simulation have to agree.

python tests/simulate/grid.py [WORD...] prints the difference for each whose name holds these words.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "memory"))
from worlds import GIB, hardware, plan

from dsgen.errors import ProblemsError
from dsgen.facts.models import find_model
from dsgen.memory.account import account
from dsgen.memory.ledger import Ledger
from dsgen.plan import Checkpointing
from dsgen.report.simulation import tensors
from dsgen.shapes.from_row import architecture
from dsgen.shapes.lora import with_method
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Shapes
from dsgen.simulate.run import simulate
from dsgen.simulate.values import Simulation
from dsgen.spec.values import Code, Method, Optimizer, Training
from dsgen.target import Target

NONE, FULL, SELECTIVE, EVERY = (Checkpointing(kind) for kind in ("none", "full", "selective", "every"))
PLAIN = Training(attention="sdpa")
LORA = replace(PLAIN, method=Method(type="lora", rank=16))
NARROW = replace(PLAIN, optimizer=Optimizer(step="foreach"), code=Code(weights_in_compute_type=True))
UNDROPPED = replace(PLAIN, code=Code(dropout=False))
LIGER = replace(PLAIN, loss="fused_linear", code=Code(fused=frozenset({"norm"})))


@dataclass(frozen=True)
class Case:
    """One model under one layout."""

    format: str
    model: str
    changes: dict[str, Any] = field(default_factory=dict)
    training: Training = PLAIN
    sequence: int = 2048
    layers: int | None = None
    """None: the model's own."""
    published: bool = False
    """transformers' class instead of the decoder that build writes."""

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.changes.items()]
        kind = {id(LORA): "lora", id(NARROW): "narrow", id(LIGER): "liger"}.get(id(self.training), "")
        depth = f"{self.layers} layers" if self.layers else ""
        source = "transformers" if self.published else ""
        return " ".join(filter(None, [self.format, self.model, source, depth, kind, *words]))

    @property
    def shapes(self) -> Shapes:
        row = find_model(self.model)
        assert row is not None
        arch = architecture(row)
        arch = replace(arch, layers=self.layers or arch.layers)
        return with_method(build(self.model, arch), self.training.method)

    def formula(self) -> Ledger:
        return account(*self._inputs())

    def simulated(self, **options: Any) -> Simulation:
        return simulate(*self._inputs(), timeout=600, **options)

    def _inputs(self) -> tuple[Any, ...]:
        target = Target(
            format=self.format,  # type: ignore[arg-type]
            loaded_by="transformers" if self.published else "deepspeed",
        )
        return plan(**self.changes), self.shapes, self.training, self.sequence, hardware(), target


def formula_peak(ledger: Ledger) -> int:
    return max(tensors(moment) for moment in ledger.device.moments)


def _torch() -> Iterator[Case]:
    """FSDP2, FSDP1 and plain torch at the models' own depth."""
    llama = "llama-2-7b"
    for checkpointing in (NONE, FULL, SELECTIVE, replace(EVERY, every=2)):
        yield Case("fsdp2", "llama-3.1-8b", {"checkpointing": checkpointing}, sequence=4096)
    for changes in (
        {"zero_stage": 2},
        {"accumulation": 4},
        {"accumulation": 4, "reduce_each_micro_batch": True},
        {"zero_stage": 2, "accumulation": 4, "micro_batch": 4},
        {"shard_group": 4, "micro_batch": 4},
        {"shard_group": 4, "zero_stage": 2, "accumulation": 2},
        {"precision": "fp32"},
        {"world_size": 64, "micro_batch": 8},
        {"world_size": 1, "micro_batch": 2, "checkpointing": NONE},
    ):
        yield Case("fsdp2", llama, changes)
    yield Case("fsdp2", llama, {"micro_batch": 4, "checkpointing": NONE}, LORA)
    yield Case("fsdp2", llama, {"micro_batch": 2, "checkpointing": NONE}, replace(PLAIN, attention="eager"))
    for model in ("qwen2.5-0.5b", "mixtral-8x7b", "olmo-2-7b", "gemma-2b", "qwen3-8b"):
        for checkpointing in (NONE, FULL):
            yield Case("fsdp2", model, {"micro_batch": 4, "checkpointing": checkpointing}, sequence=1024)
    # The ledger follows transformers' classes, which differ from the decoder that build writes in these families.
    for model in ("gpt2-xl", "pythia-6.9b", llama):
        for checkpointing in (NONE, FULL):
            changes = {"micro_batch": 4, "checkpointing": checkpointing}
            yield Case("fsdp2", model, changes, UNDROPPED, sequence=1024, published=True)
    yield Case("fsdp2", "llama-3.1-70b", {"world_size": 64})
    yield Case("fsdp2", "llama-3.1-405b", {"world_size": 512})
    for stage in (0, 2, 3):
        yield Case("fsdp1", llama, {"zero_stage": stage, "micro_batch": 4})
    yield Case("fsdp1", llama, {"shard_group": 4, "micro_batch": 8, "checkpointing": NONE})
    yield Case("fsdp1", llama, {"shard_group": 4, "zero_stage": 2})
    yield Case("fsdp1", llama, {"accumulation": 4})
    yield Case("fsdp1", "llama-3.1-8b", {"micro_batch": 4, "checkpointing": SELECTIVE})
    yield Case("fsdp1", "llama-3.1-8b", {"micro_batch": 4, "checkpointing": NONE, "precision": "fp32"})
    yield Case("fsdp1", llama, {"micro_batch": 4}, NARROW)
    yield Case("fsdp1", llama, {"micro_batch": 8}, LIGER)
    for world in (1, 8):
        for checkpointing in (NONE, FULL):
            yield Case(
                "ddp", llama, {"zero_stage": 0, "world_size": world, "checkpointing": checkpointing, "micro_batch": 8}
            )
    alone = {"zero_stage": 0, "world_size": 1}
    alike = {**alone, "checkpointing": NONE, "micro_batch": 8, "precision": "fp32"}
    yield Case("ddp", "gpt2-xl", alike, UNDROPPED, sequence=1024, published=True)
    yield Case("ddp", llama, {**alone, "micro_batch": 4, "accumulation": 2}, NARROW)


def _deepspeed() -> Iterator[Case]:
    """All layers run, so of all but one model only the first."""
    for stage in (0, 1, 2, 3):
        for changes in (
            {"micro_batch": 8, "checkpointing": NONE},
            {"micro_batch": 2, "accumulation": 4},
            {"micro_batch": 1, "accumulation": 4, "gradient_precision": "fp32"},
            {"micro_batch": 2, "precision": "fp32", "overlap_comm": stage > 0},
            {"micro_batch": 2, "precision": "fp16"},
        ):
            if stage or "gradient_precision" not in changes:
                yield Case("deepspeed", "llama-2-7b", {"zero_stage": stage, **changes}, layers=8)
    for model in ("qwen2.5-0.5b", "mixtral-8x7b"):
        changes = {"micro_batch": 4, "checkpointing": NONE}
        yield Case("deepspeed", model, changes, sequence=1024, layers=4)
    changes = {"micro_batch": 4, "checkpointing": NONE}
    yield Case("deepspeed", "gpt2-xl", changes, UNDROPPED, sequence=1024, layers=8, published=True)
    yield Case("deepspeed", "llama-2-7b", {"micro_batch": 4}, LORA, layers=8)
    yield Case("deepspeed", "llama-2-7b", {"micro_batch": 4})


GRID = (*_torch(), *_deepspeed())

EVERYDAY = (
    Case("fsdp2", "llama-2-7b", {"shard_group": 4, "micro_batch": 4}, layers=4),
    Case("fsdp1", "llama-2-7b", {"micro_batch": 4, "checkpointing": NONE}, layers=4),
    Case("ddp", "llama-2-7b", {"zero_stage": 0, "micro_batch": 2}, layers=4),
    Case("deepspeed", "llama-2-7b", {"zero_stage": 2, "micro_batch": 2}, layers=4),
)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    for case in GRID:
        if not all(word in str(case) for word in sys.argv[1:]):
            continue
        try:
            ledger, simulation = case.formula(), case.simulated()
        except ProblemsError as error:
            say(f"FAILED {case}: {error.problems[0].message[:300]}")
            continue
        peak = formula_peak(ledger)
        say(
            f"{peak / simulation.peak - 1:+6.1%}  formula {peak / GIB:7.2f}  simulated {simulation.peak / GIB:7.2f}"
            f"  {simulation.seconds:5.1f} s  {case}  [{simulation.peak_moment.name}, {simulation.peak_moment.site}]"
        )


if __name__ == "__main__":
    main()
