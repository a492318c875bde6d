"""How long a lint takes, as ratios within one run: the machine's speed and load cancel out.

Measured is processor time of the child processes, the least of several tries; the clock on the wall would measure
whoever else uses the machine. Last seen on two busy cores (2026-11-29, 88 rules): a cold start of 102 ms beside 12.6 ms
of bare Python (8.2 times) and 466 ms of check-jsonschema (4.6 times as long); 1,000 files in 0.67 s, 53 bare starts.
"""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from console import environment

from dsgen.lint import versions
from dsgen.lint.plain_schema import plain_schema
from dsgen.lint.schema import newest

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": True}},
}
LINT = [sys.executable, "-m", "dsgen", "lint"]
TRIES = 5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "ds_config.json").write_text(json.dumps(CONFIG, indent=2), "utf-8")
    return tmp_path / "ds_config.json"


def seconds(command: list[str], cwd: Path, tries: int = TRIES) -> float:
    """Processor time of a command that succeeds."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    took = []
    for _ in range(tries):
        before = used()
        subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, check=True, timeout=60)
        took.append(used() - before)
    return min(took)


def test_a_cold_start_costs_few_bare_starts(file: Path) -> None:
    bare = seconds([sys.executable, "-c", "pass"], file.parent)
    # typing, dataclasses, argparse, re, json and pathlib alone are four, 30 dataclasses are 1.5; the aim is five.
    assert seconds([*LINT, file.name], file.parent) < 10 * bare


def test_a_cold_start_takes_a_third_of_check_jsonschema(file: Path) -> None:
    schema = plain_schema(versions.parse(newest()))
    (file.parent / "schema.json").write_text(json.dumps(schema), "utf-8")
    other = seconds(
        [sys.executable, "-m", "check_jsonschema", "--schemafile", "schema.json", file.name], file.parent, tries=3
    )
    assert seconds([*LINT, file.name], file.parent, tries=3) < other / 3


def test_a_thousand_files_cost_little_more_than_their_reading(file: Path) -> None:
    for number in range(1000):
        shutil.copy(file, file.parent / f"ds_{number}.json")
    bare = seconds([sys.executable, "-c", "pass"], file.parent)
    # Two seconds where a bare start takes 12 ms.
    assert seconds([*LINT, "."], file.parent, tries=2) < 2 / 0.012 * bare
