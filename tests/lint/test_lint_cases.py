"""The given cases: small inputs reduced from public reports, what must be said of each, and twins that are right."""

from pathlib import Path
from typing import Any

import pytest
from deepspeed_configs import SHARED, lint

from dsgen.lint.finding import RANK, Finding
from dsgen.lint.target import make_target

pytestmark = pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED is unset: no given cases at hand")

# case -> (code, severity, words that must be said, target as the case's spec.txt tells it)
CASES: dict[str, tuple[str, str, list[str], dict[str, Any]]] = {
    "BR-001": ("DS201", "error", ["96", "6 x 8 x 1", "= 48", "2 ranks", "launcher"], {"world_size": 1}),
    "BR-003": ("DS401", "error", ["fp16", "bf16", "Ampere"], {}),
    "BR-005": ("DS110", "error", ["aio", "zero_optimization", "top level"], {}),
    "BR-008": ("DS110", "error", ["gradient_clipping", "zero_optimization", "without a word", "ZeRO is off"], {}),
    "BR-013": ("DS405", "error", ["train_micro_batch_size_per_gpu", "bf16 is OFF"], {"loaded_by": "deepspeed"}),
    "BR-017": ("DS111", "error", ["min_loss_scale", "whole number"], {}),
    "BR-022": ("DS601", "error", ["24", "16", "8"], {"world_size": 24, "gpus_per_node": 8}),
    "BR-029": (
        "DS113",
        "error",
        ["amp", "bf16 or torch_autocast", "elasticity", "0.19.8"],
        {"deepspeed": "0.19.8"},
    ),
    "BR-031": ("DS501", "error", ["gradient_clipping", "0.3", "does not clip"], {"deepspeed": "0.16.9"}),
    "BR-050": ("DS310", "warning", ["1e9", "16 GB"], {}),
    "BR-052": ("DS406", "warning", ["64", "grad_accum_dtype", "fp32"], {}),
    "BR-099": ("DS111", "error", ["write 4777574"], {}),
}


def read(case: str, twin: bool = False) -> str:
    (folder,) = Path(str(SHARED), "cases").glob(f"{case}*")
    return (folder / "clean-twin" / "ds_config.json" if twin else folder / "ds_config.json").read_text("utf-8")


def said(findings: list[Finding]) -> str:
    return "\n".join(f"{finding.message}; {finding.help}" for finding in findings)


@pytest.mark.parametrize("case", CASES)
def test_case_is_found_with_its_facts(case: str) -> None:
    code, severity, words, flags = CASES[case]
    findings = [finding for finding in lint(read(case), make_target(**flags)) if finding.severity != "info"]
    named = [finding for finding in findings if finding.code == code]
    assert named, said(findings)
    assert max((finding.severity for finding in named), key=RANK.__getitem__) == severity
    for word in words:
        assert word in said(named)
    assert [finding.code for finding in findings if finding.code != code] == [], "and nothing else"


def twins() -> list[Path]:
    return sorted(Path(str(SHARED), "cases").glob("*/clean-twin/ds_config.json")) if SHARED else []


@pytest.mark.parametrize("twin", twins(), ids=lambda path: path.parent.parent.name)
@pytest.mark.parametrize("loaded_by", [None, "transformers"])
def test_twin_is_quiet(twin: Path, loaded_by: Any) -> None:
    findings = lint(twin.read_text("utf-8"), make_target(loaded_by=loaded_by))
    assert [finding for finding in findings if finding.severity != "info"] == []


def test_older_deepspeed_still_has_what_was_removed_later() -> None:
    findings = lint(read("BR-029"), make_target("0.16.9"))
    assert {(finding.code, finding.severity) for finding in findings} == {("DS113", "warning")}
