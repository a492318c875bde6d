"""What Accelerate makes of its own section is a DeepSpeed config, found at the section's keys."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deepspeed_configs import SHARED

from dsgen.cli import main
from dsgen.documents.yaml_text import read_yaml
from dsgen.lint.accelerate_section import PATHS
from dsgen.lint.finding import Finding
from dsgen.lint.kinds import kind_of
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target
from dsgen.lint.yaml_file import configs_in

FILE = """\
compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 2
  gradient_clipping: 1.0
  offload_optimizer_device: nvme
  offload_optimizer_nvme_path: /fast
  offload_param_device: cpu
  zero3_init_flag: true
  zero_stage: 3
  zero3_save_16bit_model: true
distributed_type: DEEPSPEED
mixed_precision: bf16
"""


def lint(text: str) -> list[Finding]:
    kind = kind_of("accelerate.yaml")
    assert kind is not None
    return lint_bytes("accelerate.yaml", text.encode(), kind, make_target("0.19.8"))


def test_it_is_read_as_accelerate_reads_it() -> None:
    (config,) = configs_in(FILE, read_yaml(FILE))
    assert config.value == {
        "gradient_accumulation_steps": 2,
        "gradient_clipping": 1.0,
        "zero_optimization": {
            "stage": 3,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/fast"},
            "offload_param": {"device": "cpu"},
            "stage3_gather_16bit_weights_on_model_save": True,
        },
    }
    assert lint(FILE) == []


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="accelerate is not installed here")
def test_the_table_is_accelerates_own() -> None:
    """Executed: the plugin makes a config of its fields; each lands where the table says."""
    code = """if True:
        import json
        from accelerate.utils import DeepSpeedPlugin
        plugin = DeepSpeedPlugin(gradient_accumulation_steps=3, gradient_clipping=0.5, zero_stage=3,
            offload_optimizer_device="nvme", offload_optimizer_nvme_path="/o", offload_param_device="nvme",
            offload_param_nvme_path="/p", zero3_save_16bit_model=True)
        print(json.dumps(plugin.deepspeed_config))
    """
    env = os.environ | {"DS_ACCELERATOR": "cpu"}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=True)
    made = json.loads(ran.stdout.splitlines()[-1])
    given = {
        "gradient_accumulation_steps": 3,
        "gradient_clipping": 0.5,
        "zero_stage": 3,
        "zero3_save_16bit_model": True,
    }
    for part, path in {"optimizer": "/o", "param": "/p"}.items():
        given |= {f"offload_{part}_device": "nvme", f"offload_{part}_nvme_path": path}
    assert given.keys() == PATHS.keys()
    for key, path in PATHS.items():
        value = made
        for step in path:
            value = value[step]
        assert value == given[key], key


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("zero_stage: 3", "zero_stage: 2"),
            [
                ("DS302", 5, "offload_optimizer_device"),
                ("DS301", 7, "offload_param_device"),
                ("AC302", 8, "zero3_init_flag"),
                ("DS307", 10, "zero3_save_16bit_model"),
            ],
        ),
        (("  offload_optimizer_nvme_path: /fast\n", ""), [("DS305", 5, "offload_optimizer_device")]),
        (("zero_stage: 3", "zero_stage: 4"), [("DS112", 9, "zero_stage")]),
    ],
)
def test_findings_stand_at_the_keys_that_were_written(
    change: tuple[str, str], expected: list[tuple[str, int, str]]
) -> None:
    found = lint(FILE.replace(*change))
    assert [(finding.code, finding.range.line, (finding.path or ("",))[-1]) for finding in found] == expected
    assert all(finding.path and finding.path[0] == "deepspeed_config" and finding.fix is None for finding in found)


def test_comments_hide_and_are_missed_when_idle() -> None:
    text = FILE.replace("zero_stage: 3", "zero_stage: 2").replace(": nvme", ": cpu").replace("true", "false")
    line = "offload_param_device: cpu"
    assert [finding.code for finding in lint(text)] == ["DS301"]
    assert lint(text.replace(line, f"{line}  # dsgen: ignore[DS301]")) == []
    assert [finding.code for finding in lint(FILE.replace(line, f"{line}  # dsgen: ignore[DS301]"))] == ["DS109"]


@pytest.mark.parametrize(
    "text",
    [
        "deepspeed_config:\n  deepspeed_config_file: ds.json\n  deepspeed_multinode_launcher: pdsh\n",
        "deepspeed_config: {}\n",
        "deepspeed_config: ds.json\n",
        "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n",
    ],
)
def test_what_accelerate_makes_nothing_of_is_left_alone(text: str) -> None:
    assert lint(text) == []


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED is unset: no corpus of real configs at hand")
def test_real_files_get_only_what_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    """Three of the corpus send parameters to the CPU at stage 2, which leaves them where they are; one names a config
    file and says mixed_precision beside it; one is a test of Accelerate itself, of a launch without DeepSpeed."""
    main(["lint", str(Path(str(SHARED), "corpus", "accelerate_yaml")), "--isolated", "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert report["files"] >= 20
    assert sorted(finding["code"] for finding in report["findings"]) == ["AC301", "AC303", *["DS301"] * 3]
