"""``dsgen show``: the tables of facts and of lint rules, as a table for people or as JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dsgen.cli.streams import console
from dsgen.errors import InputError
from dsgen.facts.tables import nearest, rows
from dsgen.units import GIB

Row = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.add_argument("table", choices=sorted(_TABLES), help="what to list")
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="only rows whose names contain this text")
    parser.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="form of the output (default: text)"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the rows asked for."""
    table = _TABLES[args.table]
    found = _matching(table.read(), args.pattern, args.table)
    if args.format == "json":
        print(json.dumps({"version": 1, args.table: found}, indent=2, ensure_ascii=False))
        return 0
    printed = _print_markdown if args.format == "markdown" else _print_table
    printed([*table.columns], [[show(row) for show in table.columns.values()] for row in found])
    return 0


def _matching(every: list[Row], pattern: str | None, table: str) -> list[Row]:
    if pattern is None:
        return every
    found = [row for row in every if any(pattern.lower() in name.lower() for name in _names(row))]
    if not found:
        close = nearest(pattern, [name for row in every for name in _names(row)])
        hint = f"did you mean {' or '.join(close)}?" if close else f"dsgen show {table} lists all"
        raise InputError.at(f"no name in the table of {table} contains {pattern!r}", help=hint)
    return found


def _names(row: Row) -> list[str]:
    return [row["name"], *row.get("aliases", ()), *filter(None, [row.get("hf_id"), row.get("family"), row.get("gpu")])]


def _models() -> list[Row]:
    from dsgen.facts.models import models
    from dsgen.shapes.from_row import PLANNED

    return [
        {
            "name": model.name,
            "hf_id": model.hf_id,
            "family": model.family,
            "kind": model.kind,
            "supported": model.kind in PLANNED,
            "parameters": model.parameters,
            "active_parameters": model.active_parameters,
            "layers": model.layers,
            "hidden": model.hidden,
            "heads": model.heads,
            "kv_heads": model.kv_heads,
            "head_dim": model.head_dim,
            "intermediate": model.intermediate,
            "vocab": model.vocab,
            "max_positions": model.max_positions,
            "experts": model.moe_experts,
            "native_dtype": model.native_dtype,
            "source": model.source,
        }
        for model in models().values()
    ]


def _gpus() -> list[Row]:
    from dsgen.facts.gpus import gpus

    aliases = {row["name"]: [alias for alias in row["aliases"].split(";") if alias] for row in rows("gpus")}
    return [
        {
            "name": gpu.name,
            "aliases": aliases[gpu.name],
            "vendor": gpu.vendor,
            "memory": gpu.memory,
            "bf16_tflops": gpu.bf16_tflops,
            "fp16_tflops": gpu.fp16_tflops,
            "fp32_tflops": gpu.fp32_tflops,
            "memory_gb_s": gpu.memory_gb_s,
            "link_gb_s": gpu.link_gb_s,
            "compute_capability": gpu.compute_capability,
            "source": gpu.source,
        }
        for gpu in gpus().values()
    ]


def _nodes() -> list[Row]:
    from dsgen.facts.nodes import nodes

    return [
        {
            "name": node.name,
            "provider": node.provider,
            "gpu": node.gpu,
            "gpus": node.gpus,
            "vcpus": node.vcpus,
            "host_memory": node.host_memory,
            "nvme": node.local_nvme,
            "inter_node_gbit_s": node.inter_node_gbit_s,
            "source": node.source,
        }
        for node in nodes().values()
    ]


def _rules() -> list[Row]:
    from dsgen.lint.rule import every_rule

    return [
        {
            "name": rule.name,
            "aliases": [rule.code],
            "code": rule.code,
            "kinds": list(rule.kinds),
            "finds": rule.title,
            "since": rule.since,
            "until": rule.until,
            "source": rule.source,
        }
        for rule in every_rule()
    ]


def _columns() -> list[Row]:
    from dsgen.score.columns import COUNTS, NEEDED, NUMBERS, REQUIRED, TEXTS

    kinds = {"text": TEXTS, "whole number": COUNTS, "number": NUMBERS}
    found = [
        {
            "name": name,
            "cell": kind,
            "needed": "file" if name in REQUIRED else "memory" if name in NEEDED else None,
            "says": says,
        }
        for kind, columns in kinds.items()
        for name, says in columns.items()
    ]
    # What is needed comes first.
    return sorted(found, key=lambda row: ("file", "memory", None).index(row["needed"]))


@dataclass(frozen=True, slots=True)
class _Table:
    read: Callable[[], list[Row]]
    columns: Mapping[str, Callable[[Row], str]]
    """Heading -> the cell's text."""


def _plain(key: str) -> Callable[[Row], str]:
    return lambda row: "-" if row[key] is None else f"{row[key]:g}" if isinstance(row[key], float) else str(row[key])


def _scaled(key: str, unit: float, text: str) -> Callable[[Row], str]:
    return lambda row: "-" if row[key] is None else text.format(row[key] / unit)


_TABLES: Mapping[str, _Table] = {
    "models": _Table(
        _models,
        {
            "name": _plain("name"),
            "Hugging Face id": _plain("hf_id"),
            "parameters": _scaled("parameters", 1e9, "{:.2f}B"),
            "active": _scaled("active_parameters", 1e9, "{:.2f}B"),
            "layers": _plain("layers"),
            "hidden": _plain("hidden"),
            "heads/kv": lambda row: f"{row['heads']}/{row['kv_heads']}",
            "positions": _plain("max_positions"),
            "kind": lambda row: row["kind"] if row["supported"] else f"{row['kind']} (not supported yet)",
        },
    ),
    "gpus": _Table(
        _gpus,
        {
            "name": _plain("name"),
            "memory": _scaled("memory", GIB, "{:.2f}GiB"),
            "bf16 TFLOPS": _plain("bf16_tflops"),
            "fp16 TFLOPS": _plain("fp16_tflops"),
            "memory GB/s": _plain("memory_gb_s"),
            "link GB/s": _plain("link_gb_s"),
            "also called": lambda row: ", ".join(row["aliases"]) or "-",
        },
    ),
    "nodes": _Table(
        _nodes,
        {
            "name": _plain("name"),
            "provider": _plain("provider"),
            "GPUs": lambda row: f"{row['gpus']} x {row['gpu']}",
            "host memory": _scaled("host_memory", GIB, "{:.0f}GiB"),
            "NVMe": _scaled("nvme", 1e12, "{:.2f}TB"),
            "Gbit/s": _plain("inter_node_gbit_s"),
        },
    ),
    "columns": _Table(
        _columns,
        {"column": _plain("name"), "cell": _plain("cell"), "needed": _plain("needed"), "says": _plain("says")},
    ),
    "rules": _Table(_rules, {"code": _plain("code"), "rule": _plain("name"), "finds": _plain("finds")}),
}


def _print_markdown(headings: list[str], cells: list[list[str]]) -> None:
    for line in [headings, ["---"] * len(headings), *cells]:
        print("|", " | ".join(cell.replace("|", r"\|") for cell in line), "|")


def _print_table(headings: list[str], cells: list[list[str]]) -> None:
    """A rich table on a terminal; elsewhere one line per row, never wrapped, so that grep and awk see whole rows."""
    if sys.stdout.isatty():
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Column, Table

        # The name is what one copies: it alone is never cut or broken.
        name = Column(headings[0], no_wrap=True, min_width=max(len(line[0]) for line in cells))
        table = Table(name, *headings[1:], box=SIMPLE_HEAD)
        for line in cells:
            table.add_row(*map(escape, line))
        console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for line in [headings, *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
