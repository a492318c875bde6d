"""What the decided layout is called in torch, whatever the format."""

from collections.abc import Mapping

from dsgen.plan import Plan, Precision

DTYPES: Mapping[Precision, str] = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}


def machines(plan: Plan) -> dict[str, int]:
    """How many nodes, and how many processes on each: what the launchers' templates ask for."""
    nodes = -(-plan.world_size // plan.gpus_per_node)
    return {"nodes": nodes, "per_node": min(plan.gpus_per_node, plan.world_size)}


def torchrun(plan: Plan) -> str:
    """The command before the script, to start the plan's processes by hand."""
    nodes, per_node = machines(plan).values()
    if nodes == 1:
        return f"torchrun --standalone --nproc-per-node {per_node}"
    return f"torchrun --nnodes {nodes} --nproc-per-node {per_node} --rdzv-backend c10d --rdzv-endpoint HOST:29500"
