"""What plans are compared by, beyond their speed."""

from dataclasses import replace
from itertools import product

from planner_specs import spec

from dsgen.plan import Device, Plan
from dsgen.planner.job import decide_spec
from dsgen.planner.ranking import handicap
from dsgen.units import GIB

CALM = decide_spec(spec(global_batch=8)).decision.chosen.plan


def away(optimizer: Device, parameters: Device) -> Plan:
    return replace(CALM, zero_stage=3, offload_optimizer=optimizer, offload_parameters=parameters)


def test_parameters_alone_leave_the_gpu_only_where_nothing_else_fits() -> None:
    """However fast: there is no measured run of it, and DeepSpeed's own estimator leaves it out."""
    devices: tuple[Device, ...] = ("cpu", "nvme")
    alone = min(handicap(away("none", parameters)) for parameters in devices)
    usual = max(handicap(away(*pair)) for pair in product(devices, ("none", *devices)))
    assert alone > 1000 * usual > 0
    # 34B on 16 GPUs fits with full checkpointing: nothing goes to the CPU alone to save that.
    chosen = decide_spec(spec("codellama-34b", nodes=2, global_batch=64, sequence_length=4096)).decision.chosen.plan
    assert (chosen.offload_parameters == "none") or (chosen.offload_optimizer != "none")
    # 70B on eight H200: with 1 TiB a node the optimizer can't leave, and on the GPUs it does not fit.
    last = decide_spec(spec("llama-3.1-70b", gpu="h200", host_memory=1024 * GIB, global_batch=64)).decision.chosen.plan
    assert (last.offload_optimizer, last.offload_parameters) == ("none", "cpu")


def test_a_wish_for_it_is_obeyed() -> None:
    want = {"offload_optimizer": "none", "offload_parameters": "cpu"}
    chosen = decide_spec(spec(want=want, global_batch=8)).decision.chosen.plan
    assert (chosen.offload_optimizer, chosen.offload_parameters) == ("none", "cpu")
