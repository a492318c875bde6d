"""Simulates one plan: in a process of its own, within a time limit."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dsgen.errors import DsgenError, MissingToolError, RefusedError
from dsgen.hardware import Hardware
from dsgen.memory.activations.kernels import kernels_of
from dsgen.memory.frozen import trained_width
from dsgen.memory.setting import setting_of
from dsgen.plan import Plan
from dsgen.processes.ask import ask
from dsgen.shapes.values import Shapes
from dsgen.simulate import extrapolate
from dsgen.simulate.order import Order
from dsgen.simulate.values import Moment, Simulation
from dsgen.spec.values import Training
from dsgen.target import Target

INSTALL = "pip install 'dsgen[smoke]'"
INSTALL_TRANSFORMERS = "pip install 'dsgen[smoke,hf]'"
TIMEOUT = 300.0
"""Seconds."""


def simulate(
    plan: Plan,
    shapes: Shapes,
    training: Training,
    sequence_length: int,
    hardware: Hardware,
    target: Target,
    *,
    timeout: float = TIMEOUT,
    everything: bool = False,
) -> Simulation:
    """The training code of ``plan`` on tensors without contents.

    Raises RefusedError for what can't be simulated, MissingToolError without torch, DsgenError beyond the time limit.
    ``everything``: every layer runs, however many there are.
    """
    order = Order(
        plan=plan,
        shapes=shapes,
        training=training,
        sequence_length=sequence_length,
        hardware=hardware,
        target=target,
    )
    with tempfile.TemporaryDirectory(prefix="dsgen-simulate-") as name:
        folder = Path(name)
        request, _ = order.request(folder, everything=everything)
        try:
            events = ask("simulate", request, folder, timeout, _NO_GPU)
        except DsgenError as error:
            # Its folder goes with it.
            raise DsgenError.at(error.problems[0].message, help=_tail(folder)) from None
        runs = [event for event in events if event["event"] == "simulated"]
        _judge(events[-1], folder)
    return _result(order, request, runs, events[-1]["torch"])


_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def _judge(last: Mapping[str, Any], folder: Path) -> None:
    if last["event"] == "missing":
        message = f"{last['library']} is not installed, and a simulation runs the real one"
        install = INSTALL_TRANSFORMERS if last["library"] == "transformers" else INSTALL
        raise MissingToolError.at(message, help=install)
    if last["event"] == "error":
        message = " ".join(str(last["message"]).split())
        where = str(last.get("source") or "").partition(": ")[0]
        raise RefusedError.at(
            f"the training code did not run: {last['phase']}: {last['type']}: {message[:_MOST]}",
            help=f"raised in {where}" if where else None,
        )
    if last["event"] != "end":
        raise DsgenError.at(f"the process ended in: {last.get('phase')}", help=_tail(folder))


def _tail(folder: Path) -> str | None:
    """What the process said last."""
    log = folder / "simulate.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return f"its last words: {lines[-1][:_MOST]}" if lines else "a larger --timeout gives it more time"


_MOST = 300
"""Characters of what a library says."""


def _result(order: Order, request: Mapping[str, Any], runs: list[dict[str, Any]], torch: str) -> Simulation:
    layers = order.shapes.architecture.layers
    line = extrapolate.Line(runs[0]["layers"], runs[-1]["layers"], layers)
    buckets = _buckets(order)
    resident = line(runs[0]["resident"], runs[-1]["resident"])
    parts = extrapolate.parts(runs[0]["resident_categories"], runs[-1]["resident_categories"], line)
    return Simulation(
        moments=tuple(_with(moment, buckets) for moment in extrapolate.moments(runs, layers)),
        resident=resident + buckets,
        resident_parts=parts | ({"buffers": buckets} if buckets else {}),
        collectives=extrapolate.parts(runs[0]["collectives"], runs[-1]["collectives"], line),
        layers=tuple(run["layers"] for run in runs),
        seconds=sum(run["seconds"] for run in runs),
        torch=torch,
        not_simulated=tuple(_not_simulated(order, request, buckets)),
    )


def _buckets(order: Order) -> int:
    """DDP copies every gradient into buckets, w each (gradient_as_bucket_view is off by default)."""
    if order.target.format != "ddp" or order.plan.world_size == 1:
        return 0
    setting = setting_of(order.plan, order.shapes, order.training, order.sequence_length, order.hardware, order.target)
    return trained_width(setting) * order.shapes.trainable


def _with(moment: Moment, buckets: int) -> Moment:
    if not buckets:
        return moment
    parts = {**moment.parts, "buffers": moment.parts.get("buffers", 0) + buckets}
    return Moment(name=moment.name, total=moment.total + buckets, parts=parts, site=moment.site)


def _not_simulated(order: Order, request: Mapping[str, Any], buckets: int) -> Iterator[str]:
    yield "the caching allocator, streams, CUDA context and NCCL's buffers: these are bytes of tensors alone"
    if buckets:
        yield "DDP's reducer, whose buckets are counted by arithmetic"
    if order.training.compile:
        yield "torch.compile: the code ran as it is written"
    if order.published and kernels_of(order.shapes.architecture).dropout and order.training.code.dropout is not False:
        yield "dropout and its masks"
    if order.training.method.dropout:
        yield "dropout of the adapters and its masks"
    if order.target.loaded_by == "transformers" and not order.published:
        yield "transformers' own class: the decoder that build writes, with the same tensors, stands for it"
    if order.plan.accumulation > request["accumulation"]:
        yield f"micro-batches beyond the first {request['accumulation']}, which repeat the one before the last"
    if request["norm"] != "fused" and order.shapes.architecture.norm == "rmsnorm":
        yield "a norm in one kernel: it is taken as transformers writes it"
