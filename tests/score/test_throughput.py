"""Throughput of measured runs: what is read from a row, how it is ranked, and how it is shown."""

import json
from math import exp
from pathlib import Path

import pytest
from made_runs import table

from dsgen.cli import main
from dsgen.score.lengths import padded_length
from dsgen.score.runs import Run, read_runs
from dsgen.score.throughput import Speed, speed
from dsgen.score.throughput_summary import spearman, throughput_summary
from dsgen.score.timed import job_of, on_one_network


def run_of(folder: Path, **cells: str) -> Run:
    (run,) = read_runs(table(folder, cells)).rows
    return run


def test_tokens_come_from_whatever_a_row_gives(tmp_path: Path) -> None:
    """512 tokens a sample, one sample a step on one GPU."""
    for cells, tokens in (
        ({"tok_s_gpu": "4000"}, 4000),
        ({"samples_s_gpu": "8"}, 8 * 512),
        ({"step_time_s": "0.125"}, 512 / 0.125),
        ({"step_time_s": "0.25", "global_batch": "2", "grad_accum": "2"}, 2 * 512 / 0.25),
    ):
        assert speed(run_of(tmp_path, **cells)).measured == pytest.approx(tokens)
    assert speed(run_of(tmp_path)).measured is None


def test_tokens_come_from_flops_by_the_models_own_count(tmp_path: Path) -> None:
    """6 N + 12 L h s for each token; an A100 does 312 TFLOPS."""
    flops = 6 * 6738415616 + 12 * 32 * 4096 * 512
    assert speed(run_of(tmp_path, tflops_gpu="156")).measured == pytest.approx(156e12 / flops)
    assert speed(run_of(tmp_path, mfu_pct="50")).measured == pytest.approx(156e12 / flops)


def test_a_prediction_is_that_of_the_jobs_step(tmp_path: Path) -> None:
    run = run_of(tmp_path, tok_s_gpu="4000")
    found = speed(run)
    assert found.step is not None
    assert found.predicted == pytest.approx(512 / found.step.seconds)
    assert found.error == pytest.approx((found.predicted or 0) / 4000 - 1)


def test_samples_of_their_own_length_compare_with_one_another_only(tmp_path: Path) -> None:
    run = run_of(tmp_path, source_id="litgpt-resource", step_time_s="0.1", notes="seq = longest Alpaca sample")
    found = speed(run)
    assert found.measured == pytest.approx(10)
    assert found.error is None
    assert found.comparable == pytest.approx((found.predicted or 0) / 512)


def test_lengths_of_padded_samples(tmp_path: Path) -> None:
    """Exponential lengths of mean m, cut at s: of one sample m - s / (e^(s/m) - 1); of many the longest nears s."""
    fixed = run_of(tmp_path, seq_len="4096")
    assert padded_length(fixed) == 4096
    cells = {"seq_len": "4096", "notes": "filtered at max_length (mean 3234 tokens)"}
    one = padded_length(run_of(tmp_path, **cells))
    assert one == pytest.approx(3234 - 4096 / (exp(4096 / 3234) - 1), rel=1e-3)
    eight = padded_length(run_of(tmp_path, **cells, micro_batch="8"))
    many = padded_length(run_of(tmp_path, **cells, micro_batch="1000"))
    assert one < eight < many < 4096
    assert many > 0.99 * 4096


def test_the_job_takes_what_notes_say(tmp_path: Path) -> None:
    found = job_of(run_of(tmp_path, notes="fabric 800Gbps"))
    assert found.hardware.inter_node_gbit_s == 800
    assert job_of(run_of(tmp_path, notes="4x100Gb RoCE")).hardware.inter_node_gbit_s == 400
    assert job_of(run_of(tmp_path)).hardware.inter_node_gbit_s is None
    assert job_of(run_of(tmp_path, compute_dtype="mxfp8")).training.code.eight_bit == "mx"
    assert job_of(run_of(tmp_path, compute_dtype="fp8_rowwise")).training.code.eight_bit == "rowwise"
    assert job_of(run_of(tmp_path)).training.code.autocast
    assert not job_of(run_of(tmp_path, notes="accelerate mixed_precision no")).training.code.autocast


def test_a_source_describes_its_cluster_once(tmp_path: Path) -> None:
    """What a row says of the network holds for the silent ones of its source and card; not where rows differ."""
    said, silent, other = {"notes": "4x100Gb RoCE"}, {"notes": "RoCE"}, {"gpu": "H100"}
    runs = read_runs(table(tmp_path, said, silent, other)).rows
    found = [job_of(run).hardware.inter_node_gbit_s for run in on_one_network(runs)]
    assert found == [400, 400, None]
    runs = read_runs(table(tmp_path, said, silent, {"notes": "fabric 800Gbps"})).rows
    found = [job_of(run).hardware.inter_node_gbit_s for run in on_one_network(runs)]
    assert found == [400, None, 800]


def test_a_speed_needs_less_than_the_memory_does(tmp_path: Path) -> None:
    """Neither checkpointing nor loss is known: no bytes, but a speed."""
    found = speed(run_of(tmp_path, act_ckpt="", loss_impl="", optimizer="", tok_s_gpu="4000"))
    assert found.skipped is None
    several = job_of(run_of(tmp_path, micro_batch="", grad_accum="", global_batch="8")).plan
    assert (several.micro_batch, several.accumulation) == (1, 8)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"notes": "power-limited card"}, "the card's power is limited"),
        ({"seq_len": ""}, "sequence length"),
        ({"kind": "component"}, "no step"),
        ({"sharding": "odd"}, "has no formula"),
        ({"model": "our own", "hidden": ""}, "nothing of hidden"),
    ],
)
def test_what_has_no_time_says_why(tmp_path: Path, cells: dict[str, str], reason: str) -> None:
    found = speed(run_of(tmp_path, **{"tok_s_gpu": "1", **cells}))
    assert found.predicted is None
    assert reason in (found.skipped or "")


def test_spearman() -> None:
    assert spearman([(1, 10), (2, 20), (3, 30)]) == pytest.approx(1)
    assert spearman([(1, 30), (2, 20), (3, 10)]) == pytest.approx(-1)
    # Ranks 1 2.5 2.5 4 against 1 2 3 4: covariance 4.5, variances 4.5 and 5.
    assert spearman([(1, 1), (2, 2), (2, 3), (9, 4)]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert spearman([(1, 1), (2, 2)]) is None
    assert spearman([(1, 1), (1, 2), (1, 3)]) is None


def test_pairs_within_a_source_and_a_card(tmp_path: Path) -> None:
    """Of three rows of one card, two pairs differ by more than a tenth; the row of another card is in no pair."""
    cells = [{"tok_s_gpu": "100"}, {"tok_s_gpu": "105"}, {"tok_s_gpu": "200"}, {"tok_s_gpu": "900", "gpu": "H100"}]
    runs = read_runs(table(tmp_path, *cells)).rows
    speeds = [
        Speed(run=run, predicted=predicted, measured=float(cell["tok_s_gpu"]))
        for run, predicted, cell in zip(runs, (110.0, 90.0, 100.0, 900.0), cells, strict=True)
    ]
    found = throughput_summary(speeds).all
    assert (found.pairs, found.right) == (2, 1)
    assert found.rank_correlation == pytest.approx(-0.5)
    assert found.mean == pytest.approx((10 / 100 + 15 / 105 + 100 / 200 + 0) / 4)
    assert found.bias == pytest.approx((10 / 100 - 15 / 105 - 100 / 200) / 4)


def test_a_score_shows_throughput(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path, {"tok_s_gpu": "1500"}, {"tok_s_gpu": "1", "notes": "power-limited card"})
    assert main(["score", path, "--rows"]) == 0
    out = capsys.readouterr().out
    assert "throughput by source" in out
    assert "1500 tokens/s" in out
    assert "no throughput: 1 row: the card's power is limited" in out
    assert main(["score", path, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = told["summary"]["throughput"]
    assert (found["n"], found["skipped"]) == (1, 1)
    assert told["sources"]["here"]["throughput"]["mean_error"] == found["mean_error"] == found["mean_error_of_sources"]
    first, second = told["rows"]
    assert first["measured_tokens_per_second_per_gpu"] == 1500
    error = first["predicted_tokens_per_second_per_gpu"] / 1500 - 1
    assert abs(error) == pytest.approx(found["mean_error"])
    assert second["predicted_tokens_per_second_per_gpu"] is None
