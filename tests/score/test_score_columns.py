"""What ``dsgen show columns`` promises of a table of measured runs, and what is read of it."""

import re
from pathlib import Path

import pytest
from made_runs import RUN, table

from dsgen.score.columns import COUNTS, KNOWN, NEEDED, NUMBERS, REQUIRED, TEXTS
from dsgen.score.model import shapes_of
from dsgen.score.predict import estimate, score
from dsgen.score.runs import read_runs
from dsgen.score.skipped import SkippedError

SIZES = ("params_b", "hidden", "layers", "heads", "kv_heads", "intermediate", "vocab", "tied_emb", "mlp")
NO_SIZES = dict.fromkeys(SIZES, "")


def promised(column: str) -> list[str]:
    """The words that the text names as cells."""
    return [word.strip() for word in TEXTS[column].partition(";")[0].split(", ") if word.strip() != "..."]


def test_a_column_is_of_one_kind_and_those_that_are_needed_exist() -> None:
    assert len(COUNTS) + len(NUMBERS) + len(TEXTS) == len({*COUNTS, *NUMBERS, *TEXTS})
    assert {*REQUIRED, *NEEDED} <= KNOWN


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (column, word)
        for column in ("sharding", "optimizer", "offload", "act_ckpt", "attention", "loss_impl", "peft", "mlp")
        for word in promised(column)
    ],
)
def test_every_word_that_is_promised_is_predicted(column: str, word: str, tmp_path: Path) -> None:
    (run,) = read_runs(table(tmp_path, {**NO_SIZES, "n_gpus": "8", "dp": "8", column: word})).rows
    assert estimate(run).figures


@pytest.mark.parametrize("word", ["selective(core_attn)", "selective(mlp+core_attn)"])
@pytest.mark.parametrize(("framework", "sharding"), [("megatron-lm", "distopt(zero1)"), ("hf trainer", "zero3")])
def test_parts_of_a_block_are_recomputed_by_megatron_only(
    word: str, framework: str, sharding: str, tmp_path: Path
) -> None:
    assert word in TEXTS["act_ckpt"]
    cells = {"act_ckpt": word, "framework": framework, "sharding": sharding, "n_gpus": "8", "dp": "8"}
    (run,) = read_runs(table(tmp_path, cells)).rows
    assert {scored.figure is not None for scored in score(run)} <= {framework == "megatron-lm"}


@pytest.mark.parametrize("column", sorted(NEEDED))
def test_what_is_needed_for_memory_is(column: str, tmp_path: Path) -> None:
    (run,) = read_runs(table(tmp_path, {column: "", "gpu_mem_gb": ""})).rows
    assert all(scored.figure is None and scored.skipped for scored in score(run))


def test_the_columns_that_are_needed_are_enough(tmp_path: Path) -> None:
    few = {name: RUN.get(name, "") if name in {*REQUIRED, *NEEDED} else "" for name in RUN}
    (run,) = read_runs(table(tmp_path, few)).rows
    assert estimate(run).figures


@pytest.mark.parametrize("name", ["Llama-2-7B", "llama-3.1-8b", "meta-llama/Llama-3.2-1B", "mixtral-8x7b"])
def test_a_known_name_stands_for_its_sizes(name: str, tmp_path: Path) -> None:
    from dsgen.facts.models import find_model

    (run,) = read_runs(table(tmp_path, {**NO_SIZES, "model": name})).rows
    model = find_model(name)
    assert model
    assert shapes_of(run).parameters == model.parameters
    assert shapes_of(run).architecture.tied == model.tied


def test_sizes_that_are_stated_win_over_a_name(tmp_path: Path) -> None:
    (run,) = read_runs(table(tmp_path, {**NO_SIZES, "model": "llama-2-7b", "vocab": "32064"})).rows
    assert shapes_of(run).parameters == 6_738_415_616 + 2 * 64 * 4096
    (other,) = read_runs(table(tmp_path, {**NO_SIZES, "model": "llama-2-7b", "layers": "16"})).rows
    with pytest.raises(SkippedError, match=r"^the row says nothing of hidden, heads, intermediate, vocab$"):
        shapes_of(other)


def test_an_unknown_name_without_sizes_is_said(tmp_path: Path) -> None:
    (run,) = read_runs(table(tmp_path, {**NO_SIZES, "model": "our-7b"})).rows
    with pytest.raises(SkippedError, match=re.escape("'our-7b' is no model of dsgen's table")):
        shapes_of(run)


def test_zero_stages_are_read_as_people_write_them(tmp_path: Path) -> None:
    made = [{"sharding": name, "n_gpus": "8", "dp": "8"} for name in ("zero2", "ZeRO-2")]
    first, second = (estimate(run).figures for run in read_runs(table(tmp_path, *made)).rows)
    assert first == second
