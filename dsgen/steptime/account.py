"""The step time of one plan."""

from collections.abc import Mapping

from dsgen.facts.constants import constant
from dsgen.hardware import Hardware
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.steptime import offload, optimizer
from dsgen.steptime.flops import model_flops
from dsgen.steptime.notes import assumptions
from dsgen.steptime.passes import Passes, passes_of
from dsgen.steptime.setting import Setting, setting_of
from dsgen.steptime.sharding import exchange_of, exposed
from dsgen.steptime.values import StepTime, TimePart
from dsgen.target import Target


def step_time(
    plan: Plan, shapes: Shapes, training: Training, sequence_length: int, hardware: Hardware, target: Target
) -> StepTime:
    """Seconds of one optimizer step of ``plan``, m micro-batches over p stages of v chunks.

    - Passes: m times those of one micro-batch on the slowest stage.
    - Bubble: (p - 1) / v micro-batches without the head (1F1B; interleaved, arXiv 2104.04473, section 2.2).
    - Where the host takes longer to launch a micro-batch than the GPU to run it, the difference is launch time.

    shapes: of the model as it is trained (adapters and what is frozen included).
    """
    setting = setting_of(plan, shapes, training, sequence_length, hardware, target)
    passes = passes_of(setting)
    parts = _parts(setting, passes)
    seconds = sum(parts.values())
    speed = plan.global_batch * sequence_length / seconds / plan.world_size
    peak = setting.machine.peak
    width = _band(parts)
    return StepTime(
        parts=parts,
        tokens_per_second_per_gpu=speed,
        mfu=model_flops(shapes, training, sequence_length) * speed / peak if peak else None,
        low=seconds - width,
        high=seconds + width,
        notes=assumptions(setting),
    )


_BANDS: Mapping[TimePart, str] = {
    "compute": "band_compute",
    "recomputation": "band_compute",
    "communication": "band_waiting",
    "offload": "band_waiting",
    "launch": "band_waiting",
    "optimizer": "band_rest",
    "bubble": "band_rest",
}


def _band(parts: Mapping[TimePart, float]) -> float:
    """Half the band's width in seconds: parts err together, so their widths add up."""
    return sum(seconds * constant(_BANDS[part]) for part, seconds in parts.items())


def _parts(setting: Setting, passes: Passes) -> dict[TimePart, float]:
    plan, m = setting.plan, setting.plan.accumulation
    backward = passes.backward + passes.recomputed
    exchange = exchange_of(setting)
    if exchange.hides:
        each = exposed(exchange.forward, passes.forward) + exposed(exchange.backward, backward)
        once = exposed(exchange.backward + exchange.last_backward, backward) - exposed(exchange.backward, backward)
    else:
        each, once = exchange.forward + exchange.backward, exchange.last_backward
    communication = m * (passes.communication + each) + once + exchange.after
    moved = offload.with_micro_batch(setting, passes.forward, backward)
    traffic, on_host = offload.after_passes(setting)
    bubble = (plan.pipeline_parallel - 1) / plan.virtual_stages
    waiting = max(0.0, passes.host - passes.gpu - each)
    stepped = on_host if plan.offload_optimizer != "none" else optimizer.on_gpu(setting)
    launched = constant("host_launch") * optimizer.launches(setting)
    return {
        "compute": m * (passes.forward + passes.backward),
        "recomputation": m * passes.recomputed,
        "communication": communication,
        "offload": m * moved + traffic,
        "optimizer": stepped,
        "bubble": bubble * (passes.gpu - passes.head + waiting),
        "launch": m * waiting + max(0.0, launched - stepped) + constant("host_step") * setting.machine.host,
    }
