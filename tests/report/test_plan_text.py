"""The plan as text: whole lines when piped, never wider than the terminal otherwise."""

import io
import re

import pytest
from plan_views import view
from rich.console import Console

from dsgen.report.plan_text import print_plan
from dsgen.report.plan_view import PlanView
from dsgen.units import GIB


def text_of(shown: PlanView, **console: object) -> str:
    out = io.StringIO()
    print_plan(shown, Console(file=out, **console))  # type: ignore[arg-type]
    return out.getvalue()


def test_answer_first() -> None:
    lines = text_of(view()).splitlines()
    assert lines[0] == "llama-2-7b (6.74B parameters) on 8 x a100-80gb-sxm"
    assert lines[1].startswith("fits")


@pytest.mark.parametrize(
    ("stage", "layout"),
    [
        (2, "FSDP2, parameters gathered until the backward pass (ZeRO-2)"),
        (3, "FSDP2, parameters sharded (ZeRO-3)"),
    ],
)
def test_fsdp2_is_called_by_its_name(stage: int, layout: str) -> None:
    """A bare ZeRO-2 would be DeepSpeed's, which shards no parameters."""
    text = text_of(view(format="fsdp2", zero_stage=stage))
    assert re.match(rf"fits(, tightly)?: {re.escape(layout)}, ", text.splitlines()[1])
    assert re.search(rf"^  layout +{re.escape(layout)}$", text, re.MULTILINE)
    assert "ZeRO stage   " not in text
    assert "FSDP2" not in text_of(view(zero_stage=stage))


def test_ledger_by_part_and_moment() -> None:
    shown = view()
    text = text_of(shown)
    header = next(line for line in text.splitlines() if line.startswith("part"))
    moments = shown.shown.ledger.device.moments
    assert re.split(r"  +", header.strip()) == ["part", *(moment.name for moment in moments)]
    for part in ("parameters", "gradients", "master_weights", "optimizer_states", "framework"):
        row = next(line for line in text.splitlines() if line.strip().startswith(part + " "))
        assert len(row.split()) == 1 + len(moments)
    total = next(line for line in text.splitlines() if line.strip().startswith("total"))
    assert [float(figure) for figure in total.split()[1:]] == [
        pytest.approx(moment.total / GIB, abs=0.005) for moment in moments
    ]


def test_piped_lines_stay_whole() -> None:
    """A refusal of 150 characters is one line, so that grep shows all of it."""
    text = text_of(view(), width=60)
    refused = [line for line in text.splitlines() if "optimizer_states" in line and "over by" in line]
    assert refused
    assert all(line.startswith("  - ") for line in refused)
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_is_never_overrun(width: int) -> None:
    text = text_of(view(), width=width, force_terminal=True, color_system="standard")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line) for line in plain.splitlines()) <= width


def test_sections() -> None:
    text = text_of(view())
    for heading in ("Plan", "Memory of the fullest GPU, GiB", "Why", "Runners-up", "Refused", "Notes"):
        assert heading in text.splitlines()
    assert "textbook states a GPU" in text
    assert "one checkpoint on disk" in text
    assert "no measured run" in text


def test_plans_that_fail_alike_share_a_line() -> None:
    """With DDP the optimizer step overflows, whatever is checkpointed: one line, not three."""
    text = text_of(view(budget=24 * GIB))
    (line,) = [line for line in text.splitlines() if line.startswith("  - DDP (ZeRO-0)")]
    assert "with no, selective or full checkpointing, micro-batch 1 x 16: " in line
    assert "at the optimizer step" in line


def test_nothing_fits_says_so_first() -> None:
    lines = text_of(view(zero_stage=0, checkpointing="none", micro_batch=16)).splitlines()
    assert lines[1].startswith("does not fit; closest is DDP (ZeRO-0), micro-batch 16 x 1")
