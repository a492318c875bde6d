"""What DeepSpeed's engine sends below stage 3, seen as it sends it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from made import setting

from dsgen.facts.constants import constants_as
from dsgen.steptime.sharding import exchange_of

HELPER = Path(__file__).with_name("count_collectives.py")
RANKS, MICRO_BATCHES = 8, 2


def test_deepspeed_all_reduces_below_stage_3() -> None:
    """An all-reduce is two volumes. Stage 1 adds a gather of the weights; stage 2 all-reduces each micro-batch."""
    pytest.importorskip("deepspeed")
    done = subprocess.run(
        [sys.executable, str(HELPER), "1", "2"], capture_output=True, text=True, check=True, timeout=300
    )
    # Importing DeepSpeed prints.
    found = json.loads(done.stdout.splitlines()[-1])
    once, each = {"all_reduce": 1, "all_gather": 1}, {"all_reduce": MICRO_BATCHES, "all_gather": 1}
    # What gradients are added up in changes nothing: they travel in the compute type.
    assert found == [[once, once], [each, each]]
    with constants_as({"collective_start": 0.0}):
        for stage, pair in enumerate(found, start=1):
            for sums, sent in zip(("bf16", "fp32"), pair, strict=True):
                here = setting(
                    target="deepspeed",
                    zero_stage=stage,
                    world_size=RANKS,
                    accumulation=MICRO_BATCHES,
                    gradient_precision=sums,
                )
                said = exchange_of(here)
                one = here.links.gather(2 * here.parameters, RANKS)
                seconds = MICRO_BATCHES * said.backward + said.last_backward + said.after
                assert seconds / one == pytest.approx(2 * sent["all_reduce"] + sent["all_gather"]), (stage, sums)
