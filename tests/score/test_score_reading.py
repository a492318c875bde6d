"""Reading tables of measured runs, hostile ones too."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_runs import RUN, table

from dsgen.errors import InputError
from dsgen.score.predict import score
from dsgen.score.runs import read_runs

CELLS = st.text(max_size=12) | st.integers(-1, 10**16).map(str) | st.floats().map(str)


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "runs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_cells_are_typed_and_unknown_columns_kept(tmp_path: Path) -> None:
    runs = read_runs(table(tmp_path, {"peak_alloc_gib": "62.5", "site": "Oslo"}))
    (run,) = runs.rows
    assert (run.counts["hidden"], run.numbers["peak_alloc_gib"], run.texts["gpu"]) == (4096, 62.5, "a100-80gb")
    assert (run.other, runs.unknown_columns) == ({"site": "Oslo"}, ("site",))
    assert run.counts["sp_ulysses"] is None  # an absent column is an empty cell
    assert run.fits


def test_a_byte_order_mark_crlf_and_quoted_line_breaks(tmp_path: Path) -> None:
    head = "\ufeffrow_id,model,n_gpus,seq_len,micro_batch,notes\r\n"
    text = head + 'a,m,1,8,1,"two\r\nlines, one ""cell"""\r\n\r\nb,m,x,8,1,\r\n'
    runs = read_runs(written(tmp_path, text))
    assert [run.row_id for run in runs.rows] == ["a"]
    assert runs.rows[0].place.line == 2
    (problem,) = runs.problems
    assert (problem.place and problem.place.line, problem.message) == (5, "n_gpus 'x' is no number")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"seq_len": "12.5"}, "seq_len '12.5' is no whole number"),
        ({"seq_len": "-4"}, "seq_len '-4' is out of range"),
        ({"seq_len": "nan"}, "seq_len 'nan' is out of range"),
        ({"micro_batch": "1e400"}, "micro_batch '1e400' is out of range"),
        ({"peak_alloc_gib": "many"}, "peak_alloc_gib 'many' is no number"),
        ({"outcome": "perhaps"}, "outcome 'perhaps' is neither fits nor oom"),
        ({"row_id": ""}, "row_id is empty"),
    ],
)
def test_a_bad_cell_costs_its_row_and_is_named_with_its_line(tmp_path: Path, cell: dict[str, str], said: str) -> None:
    runs = read_runs(table(tmp_path, {}, cell))
    assert [run.row_id for run in runs.rows] == ["r1"]
    assert [(problem.place and problem.place.line, problem.message) for problem in runs.problems] == [(3, said)]


def test_a_row_of_other_length_and_a_second_row_of_that_name(tmp_path: Path) -> None:
    text = "row_id,model,n_gpus,seq_len,micro_batch\na,m,1,8,1\na,m,1,8,1\nb,m,1,8\n"
    runs = read_runs(written(tmp_path, text))
    assert [problem.message for problem in runs.problems] == [
        "row_id 'a' stands in line 2 already",
        "has 4 cells under 5 columns",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column"),
        ("row_id,model\n", "no column 'n_gpus'"),
        ("row_id,row_id,model,n_gpus,seq_len,micro_batch\n", "column 'row_id' stands twice"),
        (b"\xff\xfe\x00", "is no UTF-8 text"),
        ('row_id,model,n_gpus,seq_len,micro_batch\na,"m"x,1,8,1\n', "is no CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_runs(written(tmp_path, text))
    assert said.replace("'", "") in str(refused.value).replace("'", "")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_machine(tmp_path: Path, end: str) -> None:
    lines = ["row_id,model,n_gpus,seq_len,micro_batch", "a,m,1,8,1", "", "b,m,x,8,1", ""]
    runs = read_runs(written(tmp_path, end.join(lines)))
    assert [(run.row_id, run.place.line) for run in runs.rows] == [("a", 2)]
    assert [problem.place and problem.place.line for problem in runs.problems] == [4]


def test_a_device_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(InputError, match=r"/dev/zero: is larger than 64 MiB"):
        read_runs("/dev/zero")


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.csv: cannot be read"):
        read_runs(str(tmp_path / "gone.csv"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.dictionaries(st.sampled_from(sorted(RUN)), CELLS, max_size=5))
def test_any_cell_gives_a_prediction_a_reason_or_a_message(tmp_path: Path, cells: dict[str, str]) -> None:
    try:
        runs = read_runs(table(tmp_path, cells))
    except InputError:
        return
    assert len(runs.rows) + len({problem.place for problem in runs.problems}) <= 2
    for run in runs.rows:
        for scored in score(run):
            assert (scored.figure is None) == (scored.skipped is not None)
