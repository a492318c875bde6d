"""Makes dsgen/facts/measured.csv from a table of measured runs: python tests/score/make_measured.py RUNS.csv"""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from dsgen.errors import ProblemsError
from dsgen.facts.gpus import find_gpu
from dsgen.memory.basis import offload_of
from dsgen.score.code import training_of
from dsgen.score.layout import plan_of
from dsgen.score.model import shapes_of
from dsgen.score.predict import Scored, score
from dsgen.score.runs import read_runs
from dsgen.score.skipped import SkippedError
from dsgen.units import GIB

TABLE = Path(__file__).resolve().parents[2] / "dsgen" / "facts" / "measured.csv"


def made(file: str) -> Iterator[dict[str, str]]:
    """A row for each run whose memory is measured and predicted; of several figures the nearest to the tensors."""
    for run in read_runs(file).rows:
        first = score(run)[0]
        if first.error is None or first.measured is None or run.texts["kind"] == "component":
            continue
        yield _row(first)


def _row(scored: Scored) -> dict[str, str]:
    run = scored.run
    try:
        plan, target = plan_of(run)
        shapes = shapes_of(run)
        training = training_of(run, shapes.architecture.gated)
    except (SkippedError, ProblemsError) as error:
        raise AssertionError(run.row_id) from error
    method = training.method
    gpu = find_gpu(run.texts["gpu"])
    assert scored.measured is not None
    tokens = plan.micro_batch * (run.counts["seq_len"] or 1) // (plan.context_parallel * plan.ulysses)
    return {
        "row_id": run.row_id,
        "source": run.source,
        "model": run.texts["model"],
        "parameters": f"{shapes.parameters / 1e9:.3g}e9",
        "method": ("qlora" if method.quantization else "lora") if method.type == "lora" else "full",
        "format": target.format,
        "stage": str(plan.zero_stage),
        "checkpointing": plan.checkpointing.kind,
        "offload": offload_of(plan),
        "gpu": gpu.name if gpu else run.texts["gpu"],
        "gpus": str(plan.world_size),
        "shards": str(plan.shards if plan.zero_stage else 1),
        "tokens": str(max(1, tokens)),
        "statistic": scored.statistic,
        "gib": f"{scored.measured / GIB:.2f}",
        "error": f"{scored.error or 0:.3f}",
    }


def table(file: str) -> str:
    """The whole table as text."""
    rows = list(made(file))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


if __name__ == "__main__":
    TABLE.write_text(table(sys.argv[1]), encoding="utf-8")
