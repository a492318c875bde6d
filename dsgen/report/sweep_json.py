"""A sweep as JSON: one row a variant, a plan or why there is none."""

import json
from collections.abc import Sequence
from typing import Any

from dsgen.planner.sweep import Row
from dsgen.report.plan_json import VERSION, plan_fields, time_fields
from dsgen.report.training_run import Ask, run_fields


def sweep_json(rows: Sequence[Row], ask: Ask) -> str:
    """One object, a newline at the end."""
    answer = {
        "version": VERSION,
        "sweep": list(rows[0].values) if rows else [],
        "rows": [_row(row, ask) for row in rows],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def _row(row: Row, ask: Ask) -> dict[str, Any]:
    """Keys are there in every row; null where there is no plan."""
    chosen = row.job.decision.chosen if row.job else None
    shown = chosen or row.closest
    device = shown.ledger.device if shown else None
    return {
        "values": dict(row.values),
        "fits": chosen is not None,
        "tight": chosen.fit.tight if chosen else None,
        "gpus": shown.plan.world_size if shown else None,
        "sequence_length": row.job.sequence_length if row.job else None,
        "plan": plan_fields(shown.plan) if shown else None,
        "peak": device.peak if device else None,
        "high": device.high if device else None,
        "memory_budget": row.job.hardware.memory_budget if row.job else None,
        "step_time": time_fields(chosen.time) if chosen else None,
        "tokens_per_second_per_gpu": chosen.speed if chosen else None,
        "tokens_per_second": chosen.speed * chosen.plan.world_size if chosen else None,
        "run": run_fields(chosen, ask) if chosen else None,
        "refusal": row.refusal,
    }
