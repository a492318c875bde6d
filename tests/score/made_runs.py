"""Makes tables of measured runs for tests."""

from collections.abc import Mapping
from pathlib import Path

RUN: Mapping[str, str] = {
    "row_id": "r1",
    "source_id": "here",
    "kind": "full_ft",
    "model": "Llama-2-7B",
    "params_b": "6.738",
    "hidden": "4096",
    "layers": "32",
    "heads": "32",
    "kv_heads": "32",
    "intermediate": "11008",
    "vocab": "32000",
    "tied_emb": "no",
    "mlp": "swiglu",
    "gpu": "A100-80GB",
    "gpu_mem_gb": "80",
    "n_gpus": "1",
    "nodes": "1",
    "dp": "1",
    "tp": "1",
    "pp": "1",
    "cp": "1",
    "framework": "HF Trainer",
    "sharding": "none",
    "master_dtype": "bf16",
    "compute_dtype": "bf16",
    "optimizer": "adamw_torch(foreach)",
    "optim_state_dtype": "bf16",
    "offload": "none",
    "seq_len": "512",
    "micro_batch": "1",
    "grad_accum": "1",
    "act_ckpt": "full",
    "attention": "flash2",
    "compile": "no",
    "loss_impl": "full_ce(fp32)",
    "peft": "none",
    "quant": "none",
    "outcome": "fits",
    "completeness": "A",
}
"""Llama-2-7B in pure bf16 on one GPU: bound by the step, 10 bytes a parameter."""


def table(folder: Path, *rows: Mapping[str, str]) -> str:
    """Writes a CSV of rows like RUN with other cells; the path."""
    made = [{**RUN, "row_id": f"r{number}", **row} for number, row in enumerate(rows, 1)]
    columns = list(dict.fromkeys(name for row in made for name in row))
    lines = [",".join(columns), *(",".join(_quoted(row.get(name, "")) for name in columns) for row in made)]
    path = folder / "runs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell
