"""Which Python files a folder search takes, and how the command shows what it finds in them."""

import json
from pathlib import Path

import pytest

from dsgen.cli import main
from dsgen.lint.kinds import KINDS

ROOT = Path(__file__).resolve().parents[3]
(PYTHON,) = (kind for kind in KINDS if kind.name == "python")

BAD = """import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, batch in enumerate(loader):
    (model(batch).mean() / 4).backward()
    if step % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

OURS = {
    "a loop": BAD,
    "two imports in a line": "import contextlib, deepspeed\nengine, *_ = deepspeed.initialize(model=net)\n",
    "an import inside": "def main():\n    from accelerate import Accelerator\n    Accelerator()\n",
    "a trainer": "from transformers import Trainer, TrainingArguments\nargs = TrainingArguments('out')\n",
    "a submodule": "from torch.distributed.fsdp import fully_shard\nfully_shard(net)\n",
}
FOREIGN = {
    "no training": "import torch\nprint(torch.ones(1))\n",
    "another library": "import tensorflow\nloss.backward()\n",
    "a name that begins like one": "import torchvision_extras\nx.backward()\n",
    "only a comment": "import os  # not torch\nx.backward()\n",
    "empty": "",
}


@pytest.mark.parametrize("text", OURS.values(), ids=OURS.keys())
def test_training_code_is_taken_from_a_folder(text: str) -> None:
    assert PYTHON.in_folders(text)


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
def test_other_code_is_not(text: str) -> None:
    assert not PYTHON.in_folders(text)


def test_what_looks_like_ours_is_told_in_linear_time() -> None:
    assert not PYTHON.in_folders("\n" * 200_000 + " " * 200_000 + "import " * 50_000)


def test_command_shows_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(BAD)
    (tmp_path / "other.py").write_text("import os\n")
    assert main(["lint", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "train.py:5:8: error: the first update comes after 1 micro-batch instead of 4" in shown
    assert "      if step % 4 == 0:\n         ^^^^^^^^^^^^^\n" in shown
    assert "1 file checked: 1 error" in shown


def test_command_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(BAD)
    assert main(["lint", "--format", "json", str(tmp_path / "train.py")]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["path"] is None
    place = [finding[key] for key in ("line", "column", "end_line", "end_column")]
    assert place == [5, 8, 5, 21]
    assert finding["fix"] == {
        "safe": False,
        "description": "count from one",
        "edits": [{"line": 5, "column": 8, "end_line": 5, "end_column": 12, "text": "(step + 1)"}],
    }


def test_a_named_file_that_is_no_python_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_bytes(b"import torch\nx = (\xff\n")
    assert main(["lint", str(tmp_path / "train.py")]) == 1
    assert "[TC101 file-cannot-be-read]" in capsys.readouterr().out


def test_neither_torch_nor_what_writes_is_loaded(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "train.py").write_text(BAD)
    code = (
        "import sys\nfrom dsgen.cli import main\n"
        f"main(['lint', {str(tmp_path / 'train.py')!r}])\nprint(*sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    loaded = set(ran.stderr.split())
    assert "dsgen.lint.python.read" in loaded
    assert not loaded & {"torch", "deepspeed", "jinja2", "jsonschema", "yaml", "rich", "dsgen.planner", "libcst"}
