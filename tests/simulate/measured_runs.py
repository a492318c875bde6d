"""Measured runs simulated: python tests/simulate/measured_runs.py RUNS.csv [ROW...] prints one line for each."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from grid import say

from dsgen.errors import ProblemsError
from dsgen.formats.families import traits_of
from dsgen.memory.account import account
from dsgen.report.simulation import tensors
from dsgen.score.code import training_of
from dsgen.score.layout import plan_of
from dsgen.score.machines import hardware_of
from dsgen.score.model import shapes_of
from dsgen.score.runs import Run, read_runs
from dsgen.score.skipped import SkippedError
from dsgen.shapes.hf_classes import HF_CLASSES
from dsgen.shapes.lora import with_method
from dsgen.simulate.order import Order, refuse
from dsgen.simulate.run import simulate
from dsgen.units import GIB


@dataclass(frozen=True)
class Measured:
    """One run whose allocated bytes are known, and how it would be simulated."""

    run: Run
    order: Order
    allocated: float

    def formula(self) -> int:
        o = self.order
        moments = account(o.plan, o.shapes, o.training, o.sequence_length, o.hardware, o.target).device.moments
        return max(tensors(moment) for moment in moments)

    def simulated(self) -> int:
        o = self.order
        return simulate(o.plan, o.shapes, o.training, o.sequence_length, o.hardware, o.target, timeout=600).peak


def measured(file: str) -> Iterator[Measured]:
    """Runs with allocated bytes that can be simulated as they are."""
    for run in read_runs(file).rows:
        allocated = run.numbers["peak_alloc_gib"]
        if allocated is None or run.texts["kind"] == "component" or run.counts["seq_len"] is None:
            continue
        try:
            plan, target = plan_of(run)
            shapes = shapes_of(run)
            training = training_of(run, shapes.architecture.gated)
            if training.code.library == "transformers" and shapes.architecture.hf_architecture in HF_CLASSES:
                target = replace(target, loaded_by="transformers")
            order = Order(
                plan=plan,
                shapes=with_method(shapes, training.method),
                training=training,
                sequence_length=run.counts["seq_len"],
                hardware=hardware_of(run),
                target=target,
            )
            refuse(order)
            traits_of(shapes.architecture)
        except (SkippedError, ProblemsError):
            continue
        # What is compiled keeps other tensors than what is written.
        if not training.compile:
            yield Measured(run, order, allocated * GIB)


def main() -> None:
    wanted = set(sys.argv[2:])
    errors = []
    for each in measured(sys.argv[1]):
        if wanted and each.run.row_id not in wanted:
            continue
        try:
            simulated = each.simulated()
        except ProblemsError as error:
            say(f"{each.run.row_id:8} {each.run.source:20} {error.problems[0].message[:200]}")
            continue
        errors.append(abs(simulated / each.allocated - 1))
        plan = each.order.plan
        say(
            f"{each.run.row_id:8} {each.run.source:20} {each.order.target.format:9} {each.order.shapes.name:24}"
            f" b{plan.micro_batch:<3} measured {each.allocated / GIB:7.2f}  simulated {simulated / GIB:7.2f}"
            f" {simulated / each.allocated - 1:+6.1%}  formula {each.formula() / each.allocated - 1:+6.1%}"
        )
    errors.sort()
    if errors:
        middle, late = errors[len(errors) // 2], errors[int(0.9 * (len(errors) - 1))]
        say(f"{len(errors)} runs: median {middle:.1%}, 90th percentile {late:.1%}, largest {errors[-1]:.1%}")


if __name__ == "__main__":
    main()
