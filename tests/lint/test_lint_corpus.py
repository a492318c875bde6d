"""Real configs: nothing crashes, and those that are known to work get no error."""

import pytest
from deepspeed_configs import DEEPSPEED, corpus, lint

from dsgen.lint.run import lint_bytes
from dsgen.lint.target import INSTALLED, make_target

pytestmark = pytest.mark.skipif(not corpus(), reason="DSGEN_SHARED is unset: no corpus of real configs at hand")

# Where DeepSpeed 0.19.6 accepts an official example and we warn all the same: each with its reason.
DEFENDED = {
    ("DS110", "cuda_visible_devices"): "read by the example's own script, ignored by DeepSpeed",
    ("DS110", "comms_config"): "no version of DeepSpeed reads it",
    ("DS110", "monitor_config"): "no version of DeepSpeed reads it",
    ("DS113", None): "works in 0.19.6, refused from 0.19.7 or 0.19.8 on",
    ("DS301", None): "offload_param at stage 0 or 2 does nothing",
    (
        "DS324",
        None,
    ): "sub_group_size 0 makes a group of each parameter: it works, slowly (stage3.py:_create_fp16_sub_groups)",
    ("DS309", "torch_adam"): "torch's own Adam steps on the CPU; an integration test wants just that",
}


@pytest.mark.parametrize(("version", "origin"), [(None, None), ("0.19.6", None), ("0.19.8", INSTALLED)])
@pytest.mark.parametrize("loaded_by", [None, "transformers"])
def test_working_files_get_no_error(version: str | None, origin: str | None, loaded_by: str | None) -> None:
    target = make_target(version, loaded_by, origin=origin)  # type: ignore[arg-type]
    checked = 0
    for real in corpus():
        if real.works and real.accepted:
            checked += 1
            findings = lint_bytes(real.file, real.path.read_bytes(), DEEPSPEED, target)
            assert [finding for finding in findings if finding.severity == "error"] == []
    assert checked >= 60


def test_each_warning_on_a_working_file_is_defended() -> None:
    used = set()
    for real in corpus():
        if not (real.works and real.accepted):
            continue
        for finding in lint(real.path.read_text("utf-8"), make_target("0.19.6"), real.file):
            if finding.severity == "warning" and finding.path:
                known = {(finding.code, finding.path[-1]), (finding.code, None)} & DEFENDED.keys()
                assert known, f"{real.file}: {finding.code} {finding.message}"
                used |= known
    assert used == DEFENDED.keys(), "a reason that nothing needs any more"


def test_what_deepspeed_refuses_is_an_error() -> None:
    # GPUDirect Storage was refused for want of a GPU where the check ran, which a file does not tell.
    refused = [real for real in corpus() if real.refusal and "GDS" not in real.refusal]
    quiet = [
        real.file
        for real in refused
        if not any(
            finding.severity == "error"
            for finding in lint(real.path.read_text("utf-8"), make_target("0.19.6", "deepspeed", 1), real.file)
        )
    ]
    assert len(refused) > 10
    assert quiet == []


@pytest.mark.parametrize("version", ["0.14.0", "0.16.4", "0.19.8"])
@pytest.mark.parametrize("loaded_by", ["deepspeed", "transformers", "accelerate", "lightning"])
def test_no_file_crashes_any_target(version: str, loaded_by: str) -> None:
    target = make_target(version, loaded_by, world_size=8, gpus_per_node=4)  # type: ignore[arg-type]
    for real in corpus():
        for finding in lint(real.path.read_text("utf-8"), target, real.file):
            assert finding.range.line >= 1
            assert finding.range.column >= 1
            assert finding.range[:2] <= finding.range[2:]
