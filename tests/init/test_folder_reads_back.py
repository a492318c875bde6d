"""What dsgen builds, init reads back: config, script and launcher together are the plan that they were written from."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsgen.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/ds_config.json"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_built_folder_reads_back_as_its_plan(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = str(ROOT / "examples" / name / "spec.yaml")
    assert main(["plan", spec, "--format", "json"]) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)["plan"]
    assert main(["build", spec, "-o", "out/"]) == 0
    files = ["out/ds_config.json", "out/launch/torchrun.sh"]
    by_trainer = "loaded_by" in Path(spec).read_text(encoding="utf-8")
    assert main(["init", "--from", *files, *(["out/train.py"] if by_trainer else [])]) == 0
    found = yaml.safe_load(Path("spec.yaml").read_text(encoding="utf-8"))
    want, hardware = found["want"], found["hardware"]
    for key in ("zero_stage", "offload_optimizer", "offload_parameters", "micro_batch", "accumulation"):
        assert want[key] == plan[key], key
    assert found["training"]["precision"] == plan["precision"]
    assert hardware["gpus_per_node"] * hardware.get("nodes", 1) == plan["world_size"]
    for key, value in want.get("buckets", {}).items():
        assert value == plan["buckets"][key], key
    for key, value in want.get("swap", {}).items():
        assert value == plan["swap"][key], key
    if by_trainer:
        assert want["checkpointing"] == plan["checkpointing"]
        assert found["target"]["loaded_by"] == "transformers"
