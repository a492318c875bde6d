"""What stands beside sharding.py in a folder: a training script, its model and data, a launcher."""

from pathlib import Path
from typing import Any

from dsgen.formats.decoder import decoder_source
from dsgen.formats.fsdp2.optimizer import optimizer
from dsgen.formats.fsdp2.order import Order
from dsgen.formats.templating import render
from dsgen.units import format_bytes

LAUNCHER = "launch/torchrun.sh"
_FP32 = 4


def scripts(order: Order, templates: Path | None) -> tuple[dict[str, str], frozenset[str]]:
    """Files by relative path, and which of them may be executed."""
    case, plan = order.case, order.plan
    values = _values(order)
    files = {
        name: render(f"fsdp2/{name}.j2", values, templates)
        for name in ("train.py", "loader.py", "weights.py", "checkpoint.py")
    }
    files["model.py"] = decoder_source(
        case.shapes.architecture,
        case.training.method,
        model=case.shapes.name,
        attention=case.training.attention,
        templates=templates,
    )
    files["data.py"] = render("model/data.py.j2", {"sharded": False}, templates)
    nodes = -(-plan.world_size // plan.gpus_per_node)
    machines = {"nodes": nodes, "per_node": min(plan.gpus_per_node, plan.world_size)}
    files[LAUNCHER] = render(f"{LAUNCHER}.j2", machines, templates)
    return files, frozenset({LAUNCHER})


def _values(order: Order) -> dict[str, Any]:
    case, plan = order.case, order.plan
    schedule = case.training.scheduler
    constant = schedule is not None and schedule.type == "constant" and schedule.warmup_steps == 0
    return {
        "model": case.shapes.name,
        "plan": plan,
        "shard_group": order.shard_group,
        "source": "decoder",
        "sequence_length": order.sequence_length,
        "steps": schedule.total_steps if schedule else None,
        "schedule": None if constant else schedule,
        "clipping": case.training.gradient_clipping,
        "fp16": plan.precision == "fp16",
        "offload": plan.offload_parameters == "cpu",
        "optimizer": optimizer(order),
        "whole_gradients": format_bytes(_FP32 * case.shapes.trainable),
    }
