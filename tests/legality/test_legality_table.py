"""Every row forbids what it says and nothing beside it."""

import re
from dataclasses import replace
from itertools import product

import pytest
from legality_cases import CASES, case

from dsgen.facts.versions import libraries
from dsgen.legality import rows_fsdp2
from dsgen.legality.check import broken, explain
from dsgen.legality.optimizers import needs_untested_flag
from dsgen.legality.table import TABLE
from dsgen.legality.values import Row
from dsgen.plan import Plan
from dsgen.spec.values import Training


def names(rows: list[Row]) -> list[str]:
    return [row.name for row in rows]


def test_every_row_has_its_two_cases() -> None:
    assert sorted(CASES) == sorted(row.name for row in TABLE)


@pytest.mark.parametrize("name", CASES)
def test_row_forbids_the_one_and_allows_the_other(name: str) -> None:
    forbidden, allowed = CASES[name]
    assert name in names(broken(forbidden))
    assert name not in names(broken(allowed))


@pytest.mark.parametrize("row", [row for row in TABLE if len(row.formats) > 1], ids=lambda row: row.name)
def test_row_of_several_formats_holds_in_each(row: Row) -> None:
    forbidden, allowed = CASES[row.name]
    for format in row.formats:
        assert row.name in names(broken(replace(forbidden, target=replace(forbidden.target, format=format))))
        assert row.name not in names(broken(replace(allowed, target=replace(allowed.target, format=format))))


@pytest.mark.parametrize("format", ["deepspeed", "fsdp2"])
def test_a_plain_plan_breaks_nothing(format: str) -> None:
    assert broken(case(format=format)) == []


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_row_is_well_formed(row: Row) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row.name)
    assert set(row.fields) <= {*Plan.__slots__, *Training.__slots__}
    assert row.library in libraries()
    sentence = explain(row, CASES[row.name][0].plan)
    assert "{" not in re.sub(
        r"\{(path: ...|every: n|format: deepspeed|format: fsdp2|type: full|type: lora)\}", "", sentence
    )


def test_fsdp2_has_these_stages_and_offloads_and_no_others() -> None:
    """What the planner climbs is what the rows leave."""
    devices = ("none", "cpu", "nvme")
    left = [
        (stage, optimizer, parameters)
        for stage, optimizer, parameters in product(range(4), devices, devices)
        if not broken(
            case(format="fsdp2", zero_stage=stage, offload_optimizer=optimizer, offload_parameters=parameters)
        )
    ]
    assert left == [(stage, *offload) for stage in rows_fsdp2.STAGES for offload in rows_fsdp2.OFFLOADS]


def test_sentence_names_the_plans_own_numbers() -> None:
    forbidden, _ = CASES["global-batch-not-met"]
    (row,) = broken(forbidden)
    assert "micro-batch 2 x accumulation 4 x 8 data-parallel ranks is 64" in explain(row, forbidden.plan)


def test_rows_of_other_formats_do_not_apply() -> None:
    forbidden, _ = CASES["parameter-offload-below-stage-3"]
    assert all(row.formats == ("deepspeed",) for row in broken(forbidden))


@pytest.mark.parametrize(
    ("optimizer", "stage", "needed"),
    [("sgd", 1, True), ("SGD", 3, True), ("sgd", 0, False), ("adamw", 2, False), ("Adam", 3, False), ("lamb", 1, True)],
)
def test_untested_flag(optimizer: str, stage: int, needed: bool) -> None:
    assert needs_untested_flag(optimizer, stage) is needed
