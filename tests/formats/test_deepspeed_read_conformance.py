"""Our reading of a config beside that of DeepSpeed's own parser: what both state is the same."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from console import environment

from dsgen.documents.document import Document, DocumentError
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.source import decode
from dsgen.facts.versions import libraries
from dsgen.formats.deepspeed.read import read
from dsgen.formats.deepspeed.read.sizes import default_buckets
from dsgen.reading import Reading
from dsgen.target import Target

SHARED = os.environ.get("DSGEN_SHARED")
EXECUTED = libraries()["deepspeed"].executed
MICRO = {"train_micro_batch_size_per_gpu": 1}
MADE: list[dict[str, Any]] = [
    {},
    {"zero_optimization": True, "allgather_size": 1000},
    {"zero_optimization": False},
    *({"zero_optimization": {"stage": stage}} for stage in (0, 1, 2, 3, "2")),
    {"zero_optimization": {"stage": "auto"}, "bf16": {"enabled": "auto"}, "gradient_clipping": 0.3},
    {"zero_optimization": {"stage": 2, "cpu_offload": True, "reduce_bucket_size": 2e8, "overlap_comm": True}},
    {"zero_optimization": {"stage": 3, "cpu_offload": True, "cpu_offload_param": True}, "fp16": {"enabled": True}},
    {"zero_optimization": {"stage": 3, "max_live_parameters": 7e8, "prefetch_bucket_size": 12345}},
    {"zero_optimization": {"stage": 3, "stage3_max_reuse_distance": "900", "param_persistence_threshold": 0}},
    {
        "zero_optimization": {"stage": 1, "allgather_bucket_size": 4e8, "overlap_comm": None},
        "bfloat16": {"enabled": True},
    },
    {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"pin_memory": False}}},
    {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}, "sub_group_size": 5}},
    {
        "zero_optimization": {
            "stage": 3,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/x"},
            "sub_group_size": 1e8,
        }
    },
    {"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}},
]


def _parsed(configs: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    script = Path(__file__).with_name("deepspeed_parsed.py")
    ran = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(configs),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    answers: list[dict[str, Any] | None] = json.loads(ran.stdout)
    return answers


def _reading(text: str) -> Reading:
    return read(Document(text, read_hjson(text)), Target(loaded_by="deepspeed", versions={"deepspeed": EXECUTED}))


def _differences(found: Reading, theirs: dict[str, Any]) -> list[str]:
    wishes = found.wishes
    ours: dict[str, Any] = {
        name: getattr(wishes, name)
        for name in ("zero_stage", "precision", "offload_optimizer", "offload_parameters", "overlap_comm")
    }
    ours["gradient_clipping"] = found.get("training", "gradient_clipping")
    if wishes.offload_optimizer == "cpu":
        ours["pin_memory"] = wishes.swap.pin_memory
    wrong = [
        f"{key}: {value!r}, not {theirs[key]!r}" for key, value in ours.items() if value not in (None, theirs[key])
    ]
    for key, value in theirs["buckets"].items():
        stated = getattr(wishes.buckets, key)
        # One of 0 makes a group of every tensor, as one of 1 does.
        if stated is not None and stated != (max(value, 1) if key == "sub_group_size" else value):
            wrong.append(f"buckets.{key}: {stated!r}, not {value!r}")
    return wrong


def _agree(texts: list[tuple[str, str]]) -> int:
    """How many of the named texts DeepSpeed takes; all of those have to be read alike."""
    configs = []
    for _, text in texts:
        config = dict(read_hjson(text).value)
        # What is asked is not whether the batch sizes fit our one process.
        for key in ("train_batch_size", "gradient_accumulation_steps"):
            config.pop(key, None)
        configs.append(config | MICRO)
    compared, wrong = 0, []
    for (name, text), theirs in zip(texts, _parsed(configs), strict=True):
        if theirs is not None:
            compared += 1
            wrong += [f"{name}: {difference}" for difference in _differences(_reading(text), theirs)]
    assert wrong == []
    return compared


def test_made_configs_are_read_as_deepspeed_reads_them() -> None:
    assert _agree([(json.dumps(config), json.dumps(config)) for config in MADE]) >= len(MADE) - 2


def test_sizes_that_a_file_leaves_out_are_deepspeeds_defaults() -> None:
    (theirs,) = _parsed([MICRO | {"zero_optimization": {"stage": 3}}])
    assert theirs is not None
    assert asdict(default_buckets(EXECUTED)) == theirs["buckets"]


@pytest.mark.full
@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED names no folder with configs that people wrote")
def test_what_people_wrote_is_read_as_deepspeed_reads_it() -> None:
    texts = []
    for file in sorted((Path(SHARED or "") / "corpus" / "deepspeed_json").iterdir()):
        try:
            text = decode(file.read_bytes())
            value = read_hjson(text).value
        except DocumentError:
            continue
        if isinstance(value, dict) and '"auto"' not in text:
            texts.append((file.name, text))
    assert _agree(texts) > 100
