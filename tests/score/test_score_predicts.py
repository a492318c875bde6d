"""Predictions of single runs, where the figure is arithmetic; and the command."""

import json
from pathlib import Path

import pytest
from made_runs import table

from dsgen.cli import main
from dsgen.score.component import predicted_bytes
from dsgen.score.predict import Scored, score
from dsgen.score.runs import read_runs

P = 6_738_415_616
"""Parameters of Llama-2-7B: 2 V h + L (4 h h + 3 h i + 2 h) + h."""
MIB = 2**20


def predict(folder: Path, **cells: str) -> Scored:
    (run,) = read_runs(table(folder, {"peak_alloc_gib": "1", **cells})).rows
    return score(run)[0]


def allocated(folder: Path, **cells: str) -> int:
    scored = predict(folder, **cells)
    assert scored.figure is not None, scored.skipped
    return scored.figure.predicted - 32 * MIB  # cuBLAS


def test_pure_bf16_steps_in_ten_bytes_a_parameter(tmp_path: Path) -> None:
    """Weights 2, gradients 2, states 4, and foreach's square roots 2."""
    assert allocated(tmp_path) == 10 * P


def test_fused_steps_without_temporaries(tmp_path: Path) -> None:
    assert allocated(tmp_path, optimizer="AdamW_fused") == pytest.approx(8 * P, rel=0.01)


def test_fsdp1_in_fp32_steps_in_twenty_bytes_a_parameter_of_the_shard(tmp_path: Path) -> None:
    cells = {"sharding": "fsdp1_full", "n_gpus": "4", "master_dtype": "fp32", "optim_state_dtype": "fp32"}
    assert allocated(tmp_path, **cells) == pytest.approx(20 * P / 4, rel=1e-6)


def test_nf4_weights_take_half_a_byte_and_their_scales(tmp_path: Path) -> None:
    """Blocks 0.5 + (1 + 4 / 256) / 64 bytes a weight; embedding and head stay in 16 bit."""
    cells = {"kind": "qlora", "peft": "lora r8 query+value", "quant": "nf4", "optim_state_dtype": "adapter bf16"}
    blocks = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    outside = 2 * 2 * 32000 * 4096
    adapters = 32 * 2 * 2 * 8 * 4096
    weights = blocks * (0.5 + (1 + 4 / 256) / 64) + outside + 6 * adapters
    assert allocated(tmp_path, **cells) == pytest.approx(weights, rel=0.2)
    assert allocated(tmp_path, **cells) > weights


@pytest.mark.parametrize("gpu", ["MI300X", "H100", "B200", "Gaudi2"])
@pytest.mark.parametrize("framework", ["torchtitan", "Megatron-LM", "HF Trainer"])
def test_any_card_is_asked_for_its_generation(tmp_path: Path, gpu: str, framework: str) -> None:
    cells = {"gpu": gpu, "framework": framework, "compile": "yes", "sharding": "ddp"}
    assert predict(tmp_path, **cells).skipped is None


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"act_ckpt": ""}, "what is checkpointed"),
        ({"loss_impl": ""}, "how the loss is taken"),
        ({"sharding": "mcore_fsdp"}, "has no formula"),
        ({"peft": "dora r32 q+v"}, "adapters 'dora r32 q+v'"),
        ({"seq_len": ""}, "sequence length"),
        ({"micro_batch": ""}, "micro-batch"),
        ({"params_b": "13"}, "6.738B parameters, the row says 13B"),
        ({"gpu": "Abacus", "gpu_mem_gb": ""}, "no GPU is called 'abacus'"),
        ({"model": "Ours", "hidden": ""}, "nothing of hidden"),
        ({"model": "component:rope", "kind": "component"}, "module 'rope' has no formula"),
    ],
)
def test_what_cannot_be_predicted_says_why(tmp_path: Path, cells: dict[str, str], reason: str) -> None:
    scored = predict(tmp_path, **cells)
    assert scored.figure is None
    assert reason in (scored.skipped or "")


def test_a_loss_on_given_logits_by_torch_and_in_place(tmp_path: Path) -> None:
    """fp32 logits of 16384 tokens and 32768 classes are 2 GiB; torch holds five of their size."""
    cells = {"kind": "component", "model": "component:cross_entropy", "vocab": "32768", "seq_len": "2048"}
    cells |= {"micro_batch": "8", "compute_dtype": "fp32"}
    for loss, size in (("huggingface", 10 * 2**30), ("liger", 2 * 2**30)):
        (run,) = read_runs(table(tmp_path, cells | {"loss_impl": loss})).rows
        assert predicted_bytes(run) == size


def test_json_is_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"peak_alloc_gib": "62.8", "peak_smi_gib": "66"}, {"act_ckpt": "", "peak_alloc_gib": "1"}]
    assert main(["score", table(tmp_path, *rows), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first, second = told["rows"]
    assert told["version"] == 1
    assert (first["row_id"], first["statistic"], first["predicted_outcome"]) == ("r1", "allocated", "fits")
    assert first["low_bytes"] < first["predicted_bytes"] < first["high_bytes"]
    assert first["predicted_tokens_per_second_per_gpu"] == pytest.approx(512 / first["predicted_step_seconds"])
    assert sum(first["predicted_step_parts"].values()) == pytest.approx(first["predicted_step_seconds"])
    assert first["measured_tokens_per_second_per_gpu"] is None
    assert first["skipped"] is None
    assert [other["statistic"] for other in first["other_statistics"]] == ["whole_gpu"]
    assert second["predicted_bytes"] is None
    assert "checkpointed" in second["skipped"]
    assert told["sources"]["here"]["n"] == 1
    assert told["summary"]["median_error"] < 0.01
    assert told["summary"]["skipped"] == 1


def test_text_tells_lines_reasons_and_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path, {"peak_alloc_gib": "62.8"}, {"act_ckpt": ""}, {"seq_len": "x"})
    assert main(["score", path, "--rows"]) == 0
    out = capsys.readouterr().out
    assert f"left out: {path}:4: seq_len 'x' is no number" in out
    assert "skipped: 1 row: the row does not say what is checkpointed" in out
    assert "Llama-2-7B" in out


def test_a_missing_file_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(tmp_path / "gone.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_megatron_bridge_reduces_gradients_in_bf16_and_has_one_loss(tmp_path: Path) -> None:
    """Rows of its recipes state neither: weights 2, gradients 2, masters and states 12 bytes a parameter."""
    cells = {
        "framework": "Megatron-Bridge",
        "sharding": "ddp",
        "loss_impl": "",
        "master_dtype": "fp32",
        "seq_len": "16",
    }
    bridge = {**cells, "act_ckpt": "full"}
    padding = (32000 + 127) // 128 * 128 - 32000
    assert allocated(tmp_path, **bridge) == pytest.approx(16 * (P + 2 * padding * 4096), rel=0.01)
    assert allocated(tmp_path, **bridge, reduce_dtype="fp32") == pytest.approx(18 * P, rel=0.01)
    assert predict(tmp_path, loss_impl="").skipped == "the row does not say how the loss is taken"
