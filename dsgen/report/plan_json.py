"""The plan as JSON: the shape that scripts rely on. Bytes are plain numbers; what is absent is null."""

import json
from dataclasses import asdict
from typing import Any

from dsgen.memory.ledger import PARTS, DeviceAccount, Ledger, Moment, Part, StatesClassic
from dsgen.plan import Plan
from dsgen.planner.values import Candidate
from dsgen.report.calibration_used import calibration_fields
from dsgen.report.plan_view import PlanView
from dsgen.report.simulation import simulation_fields
from dsgen.report.training_run import NOTHING, Ask, run_fields
from dsgen.steptime.values import TIME_PARTS, StepTime

VERSION = 1


def plan_json(view: PlanView, ask: Ask = NOTHING) -> str:
    """One object, keys in a fixed order, a newline at the end."""
    return json.dumps(plan_object(view, ask), indent=2, ensure_ascii=False) + "\n"


def plan_object(view: PlanView, ask: Ask = NOTHING) -> dict[str, Any]:
    """The object before it becomes text; ``simulation`` is in it only where one was asked for."""
    hardware = view.inputs.hardware
    simulated = {}
    if view.simulation is not None:
        simulated["simulation"] = simulation_fields(view.simulation, view.shown.ledger.device)
    return {
        "version": VERSION,
        "fits": view.shown.fit.fits,
        "tight": view.shown.fit.tight,
        "memory_budget": hardware.memory_budget,
        "model": view.inputs.shapes.name,
        "sequence_length": view.inputs.sequence_length,
        "plan": plan_fields(view.shown.plan),
        "ledger": ledger_fields(view.shown.ledger),
        "basis": view.basis,
        "calibration": calibration_fields(),
        **simulated,
        "step_time": time_fields(view.shown.time),
        "tokens_per_second_per_gpu": view.shown.speed,
        "run": None if ask.tokens is None else run_fields(view.shown, ask),
        "reasons": list(view.reasons),
        "alternatives": [_alternative(candidate) for candidate in view.alternatives],
        "rejected": [{"plan": plan_fields(entry.plan), "reason": entry.reason} for entry in view.rejected],
        "notes": [*view.notes, *view.shown.ledger.notes, *view.shown.time.notes],
    }


def plan_fields(plan: Plan) -> dict[str, Any]:
    """Every field of a plan under its own name, and what follows from them."""
    return asdict(plan) | {
        "checkpointing": str(plan.checkpointing),
        "data_parallel": plan.data_parallel,
        "global_batch": plan.global_batch,
    }


def time_fields(time: StepTime) -> dict[str, Any]:
    """Seconds of one optimizer step; the parts sum to them."""
    return {
        "seconds": time.seconds,
        "low": time.low,
        "high": time.high,
        "parts": {part: time.parts.get(part, 0.0) for part in TIME_PARTS},
        "mfu": time.mfu,
    }


def ledger_fields(ledger: Ledger) -> dict[str, Any]:
    """The ledger: ``parts`` are those alive at the peak, and sum to it."""
    return {
        "device": _device(ledger.device),
        "host_per_node": dict(ledger.host_per_node),
        "nvme_per_node": dict(ledger.nvme_per_node),
        "disk": dict(ledger.disk),
        "states_classic": _classic(ledger.states_classic),
    }


def _device(device: DeviceAccount) -> dict[str, Any]:
    peak = device.peak_moment
    return {
        "parts": _parts(peak),
        "peak": device.peak,
        "low": device.low,
        "high": device.high,
        "allocated": device.allocated,
        "reserved": device.reserved,
        "whole_gpu": device.whole_gpu,
        "moment": peak.name,
        "moments": [{"name": moment.name, "parts": _parts(moment), "total": moment.total} for moment in device.moments],
    }


def _parts(moment: Moment) -> dict[Part, int]:
    return {part: moment.parts.get(part, 0) for part in PARTS}


def _classic(states: StatesClassic) -> dict[str, float]:
    return {
        "parameters": states.parameters,
        "gradients": states.gradients,
        "optimizer": states.optimizer,
        "total": states.total,
    }


def _alternative(candidate: Candidate) -> dict[str, Any]:
    device = candidate.ledger.device
    return {
        "plan": plan_fields(candidate.plan),
        "tight": candidate.fit.tight,
        "peak": device.peak,
        "low": device.low,
        "high": device.high,
        "step_time": time_fields(candidate.time),
        "tokens_per_second_per_gpu": candidate.speed,
    }
