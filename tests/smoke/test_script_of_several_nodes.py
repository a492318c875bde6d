"""A folder that is meant for several nodes is tried on one."""

import sys
from pathlib import Path

from dsgen.formats.templating import render
from dsgen.smoke.script import LAUNCHER, run_script

TRAIN = """import os
if os.environ["RANK"] == "0":
    print("step 1  loss 5.5")
assert os.environ["WORLD_SIZE"] == "2"
"""


def test_this_machine_is_all_nodes(tmp_path: Path) -> None:
    (tmp_path / "launch").mkdir()
    (tmp_path / LAUNCHER).write_text(render(f"{LAUNCHER}.j2", {"nodes": 2, "per_node": 8}), "utf-8")
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    script = run_script(tmp_path, steps=1, processes=2, timeout=100, environment={"PYTHONPATH": ":".join(sys.path)})
    assert script is not None
    assert script.ok, Path(script.log).read_text("utf-8")
    assert script.losses == (5.5,)
