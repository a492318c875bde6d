"""Makes plans of rungs, and weighs them: each question is answered once."""

from dataclasses import dataclass, field, replace

from dsgen.hardware import Hardware
from dsgen.legality.check import broken_of, rows_for
from dsgen.legality.values import Case, Row
from dsgen.memory.account import account
from dsgen.memory.fit import fit
from dsgen.memory.ledger import Fit, Ledger
from dsgen.plan import Buckets, Device, Plan, Precision, Swap, Wishes, obeyed
from dsgen.planner.buckets import buckets_of, swap_of
from dsgen.planner.gradients import exact
from dsgen.planner.ladder import Rung
from dsgen.planner.micro_batch import Split
from dsgen.planner.values import Candidate
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.steptime.account import step_time
from dsgen.steptime.values import StepTime
from dsgen.target import Target


def beside_the_ladder(wishes: Wishes) -> Wishes:
    """The wishes that the ladder does not hold."""
    return Wishes(
        overlap_comm=wishes.overlap_comm,
        gradient_precision=wishes.gradient_precision,
        buckets=wishes.buckets,
        swap=wishes.swap,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """One job, for which plans are made and weighed."""

    wishes: Wishes
    shapes: Shapes
    hardware: Hardware
    training: Training
    sequence_length: int
    target: Target
    precision: Precision
    wishes_beside: Wishes = Wishes()
    """What no rung stands for: buffers, overlap, the type of gradient sums."""
    _rows: dict[None, tuple[Row, ...]] = field(default_factory=dict)
    _sizes: dict[tuple[int, Device], tuple[Buckets, Swap]] = field(default_factory=dict)
    _made: dict[tuple[Rung, Split, bool], Plan] = field(default_factory=dict)
    _weighed: dict[Plan, tuple[Ledger, Fit]] = field(default_factory=dict)
    _times: dict[Plan, StepTime] = field(default_factory=dict)

    def make(self, rung: Rung, split: Split, *, exactly: bool = True) -> Plan:
        """The plan of a rung; ``exactly``: with the best type for its sums of gradients."""
        key = (rung, split, exactly)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._plan(rung, split, exactly)
        return found

    def _plan(self, rung: Rung, split: Split, exactly: bool) -> Plan:
        world, ranks = self.hardware.world_size, rung.ranks
        shards = ranks.shard_group or max(1, world // (ranks.tensor_parallel * ranks.pipeline_parallel))
        buckets, swap = self._buffers(shards, rung.offload_optimizer)
        plan = Plan(
            world_size=world,
            gpus_per_node=self.hardware.gpus_per_node,
            zero_stage=rung.zero_stage,
            precision=self.precision,
            checkpointing=rung.checkpointing,
            micro_batch=split.micro_batch,
            accumulation=split.accumulation,
            buckets=buckets,
            shard_group=ranks.shard_group,
            tensor_parallel=ranks.tensor_parallel,
            pipeline_parallel=ranks.pipeline_parallel,
            context_parallel=ranks.context_parallel,
            ulysses=ranks.ulysses,
            expert_parallel=ranks.expert_parallel,
            offload_optimizer=rung.offload_optimizer,
            offload_parameters=rung.offload_parameters,
            offload_activations=self.wishes.offload_activations or False,
            # Costs one more bucket, and hides the reduction behind the backward pass.
            overlap_comm=rung.zero_stage > 0 and world > 1,
            swap=swap,
            zeropp=rung.zeropp,
            reduce_each_micro_batch=rung.reduce_each_micro_batch and split.accumulation > 1,
        )
        if self.wishes_beside != Wishes():
            plan = obeyed(plan, self.wishes_beside)
            if plan.gradient_precision == plan.precision:
                plan = replace(plan, gradient_precision=None)
        if exactly and self.wishes.gradient_precision is None:
            return exact(plan, self.target.format, self.broken)
        return plan

    def _buffers(self, shards: int, offload_optimizer: Device) -> tuple[Buckets, Swap]:
        key = (shards, offload_optimizer)
        if key not in self._sizes:
            self._sizes[key] = (buckets_of(self.shapes, shards, offload_optimizer), swap_of(self.shapes, shards))
        return self._sizes[key]

    def broken(self, plan: Plan) -> list[Row]:
        """The rules that the plan breaks."""
        if None not in self._rows:
            self._rows[None] = rows_for(self.target)
        case = Case(plan=plan, shapes=self.shapes, training=self.training, hardware=self.hardware, target=self.target)
        return broken_of(case, self._rows[None])

    def fit(self, plan: Plan) -> Fit:
        """Whether the plan fits."""
        return self._weigh(plan)[1]

    def _weigh(self, plan: Plan) -> tuple[Ledger, Fit]:
        found = self._weighed.get(plan)
        if found is None:
            ledger = account(plan, self.shapes, self.training, self.sequence_length, self.hardware, self.target)
            found = self._weighed[plan] = (ledger, fit(ledger, self.hardware))
        return found

    def time(self, plan: Plan) -> StepTime:
        """How long a step of the plan takes."""
        found = self._times.get(plan)
        if found is None:
            found = self._times[plan] = step_time(
                plan, self.shapes, self.training, self.sequence_length, self.hardware, self.target
            )
        return found

    def speed(self, plan: Plan) -> float:
        """Tokens per second and GPU."""
        return self.time(plan).tokens_per_second_per_gpu

    def candidate(self, plan: Plan) -> Candidate:
        """The plan with all that is known of it."""
        ledger, fits = self._weigh(plan)
        return Candidate(plan=plan, ledger=ledger, fit=fits, time=self.time(plan))

    @property
    def weighed(self) -> int:
        """Ledgers drawn up so far."""
        return len(self._weighed)
