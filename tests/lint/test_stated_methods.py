"""Weights in few bits and frozen parts, as a spec or a flag states them, are not taken for more than they are."""

import json
from pathlib import Path

import pytest

from dsgen.lint.stated import model, of_spec
from dsgen.spec.values import Method

LLAMA = 6_738_415_616
BLOCK = 202_383_360
MATRICES = 32 * (4 * 4096**2 + 3 * 4096 * 11008)


def spec(folder: Path, training: str) -> str:
    path = folder / "spec.yaml"
    path.write_text(f"model: llama-2-7b\nhardware: {{gpu: rtx-4090}}\ntraining: {training}\n", encoding="utf-8")
    return str(path)


def test_what_a_spec_freezes_is_not_trained(tmp_path: Path) -> None:
    stated = of_spec(spec(tmp_path, "{freeze: ['layers.[0-3]']}"))["model"]
    assert (stated.parameters, stated.trained(None)) == (LLAMA, LLAMA - 4 * BLOCK)


@pytest.mark.parametrize(
    ("method", "stored"),
    [
        (None, 2 * LLAMA),
        (Method(type="lora"), 2 * LLAMA),
        (Method(type="lora", quantization="nf4-plain"), (0.5 + 4 / 64) * MATRICES + 2 * (LLAMA - MATRICES)),
    ],
)
def test_stored_weights(method: Method | None, stored: float) -> None:
    assert model("llama-2-7b").stored(method, 2) == pytest.approx(stored)


def test_qlora_of_a_spec_fits_where_lora_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dsgen.cli import main

    config = tmp_path / "ds_config.json"
    zero = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
    config.write_text(json.dumps(zero), encoding="utf-8")
    codes = {}
    for method in ("lora", "qlora"):
        folder = tmp_path / method
        folder.mkdir()
        path = folder / "spec.yaml"
        path.write_text(
            "model: llama-2-70b\nhardware: {gpu: a100-80gb-sxm, gpus_per_node: 8}\n"
            f"training: {{sequence_length: 512, method: {{type: {method}}}}}\nwant: {{checkpointing: full}}\n",
            encoding="utf-8",
        )
        codes[method] = main(["lint", str(config), "--spec", str(path)])
    assert codes == {"lora": 1, "qlora": 0}, capsys.readouterr().out
