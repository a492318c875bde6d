"""Views of real decisions for the reports' tests."""

from dsgen.planner.job import decide_job, inputs_of
from dsgen.planner.refusal import NothingFitsError
from dsgen.report.plan_view import PlanView, view_of, view_of_refusal
from dsgen.spec.values import HardwareSpec, ModelSpec, Spec, TargetSpec, Training
from dsgen.target import Format
from dsgen.units import GIB


def view(budget: int | None = None, format: Format = "deepspeed", **want: object) -> PlanView:
    """Llama-2-7B on 8 x A100-80GB, or what comes closest; ``budget`` in bytes."""
    spec = Spec(
        file="spec.yaml",
        model=ModelSpec(name="llama-2-7b"),
        hardware=HardwareSpec(gpu="a100-80gb-sxm", gpus_per_node=8, host_memory=1024 * GIB),
        memory_budget=budget,
        training=Training(sequence_length=4096, global_batch=128, attention="flash"),
        target=TargetSpec(format=format),
        want=want,
    )
    inputs = inputs_of(spec)
    try:
        return view_of(decide_job(inputs))
    except NothingFitsError as refused:
        return view_of_refusal(inputs, refused)
