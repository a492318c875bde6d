"""Offload of optimizer states and parameters, and the disk settings that NVMe needs."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order
from dsgen.formats.values import Reason

_PINNED = "page-locked host buffers copy at full speed; written out because the default changed with DeepSpeed 0.19.5"
_PAGEABLE = "pageable host buffers, since page-locked ones would not fit"


def offload(order: Order) -> Iterator[Reason]:
    """Sections only for what is offloaded; nvme buffers only for nvme."""
    plan, swap, path = order.case.plan, order.case.plan.swap, order.case.hardware.nvme_path
    pinned = _PINNED if swap.pin_memory else _PAGEABLE
    if plan.offload_optimizer != "none":
        section = "zero_optimization.offload_optimizer"
        where = "host memory" if plan.offload_optimizer == "cpu" else "local NVMe"
        yield Reason(
            f"{section}.device", plan.offload_optimizer, f"optimizer states and master weights live in {where}"
        )
        if plan.offload_optimizer == "nvme":
            yield Reason(f"{section}.nvme_path", path, "the spec's hardware.nvme.path, a local drive of each node")
            yield Reason(f"{section}.buffer_count", swap.optimizer_buffers, "parameter, gradient and both moments")
        yield Reason(f"{section}.pin_memory", swap.pin_memory, pinned)
    if plan.offload_parameters != "none":
        section = "zero_optimization.offload_param"
        where = "host memory" if plan.offload_parameters == "cpu" else "local NVMe"
        yield Reason(f"{section}.device", plan.offload_parameters, f"sharded parameters live in {where}")
        if plan.offload_parameters == "nvme":
            yield Reason(f"{section}.nvme_path", path, "the spec's hardware.nvme.path, a local drive of each node")
            yield Reason(f"{section}.buffer_count", swap.parameter_buffers, "parameters on their way at one time")
            yield Reason(
                f"{section}.buffer_size",
                swap.parameter_buffer_size,
                "elements of one buffer: must hold the largest parameter shard of a rank",
            )
            yield Reason(f"{section}.max_in_cpu", swap.max_in_cpu, "elements that stay in host memory")
        yield Reason(f"{section}.pin_memory", swap.pin_memory, pinned)


def aio(order: Order) -> Iterator[Reason]:
    """Asynchronous disk reads and writes; what is best is a property of the drive."""
    plan = order.case.plan
    if "nvme" not in (plan.offload_optimizer, plan.offload_parameters):
        return
    measure = "DeepSpeed's default; ds_nvme_tune measures what is best for your drive"
    yield Reason("aio.block_size", 1048576, measure)
    yield Reason("aio.queue_depth", 8, measure)
    yield Reason("aio.intra_op_parallelism", 1, measure)
    yield Reason("aio.single_submit", False, "requests are submitted together")
    yield Reason("aio.overlap_events", True, "submitting and waiting overlap")
