"""The hook, installed by the real pre-commit, stops a bad commit and lets a good one pass."""

import subprocess
import sys
from pathlib import Path

import pytest
from console import copy_sources, environment

CONFIG = """\
repos:
  - repo: {hooks}
    rev: {rev}
    hooks:
      - id: dsgen-lint
"""
BAD = {
    "configs/ds_config.json": """\
{
  "train_batch_size": 8,
  "fp16": {"enabled": true},
  "bf16": {"enabled": true}
}
""",
    "train.py": """\
import torch


def train(model, batches, optimizer, accumulation_steps):
    for step, batch in enumerate(batches):
        loss = model(batch).loss / accumulation_steps
        loss.backward()
        if step % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    "dsl.json": '{"train_batch_size": "not ours"}\n',
}
GOOD = BAD | {
    "configs/ds_config.json": BAD["configs/ds_config.json"].replace('  "fp16": {"enabled": true},\n', ""),
    "train.py": BAD["train.py"].replace("if step %", "if (step + 1) %"),
}


class Repository:
    """A scratch git repository; nothing of the caller's git or dsgen reaches it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.env = {key: value for key, value in environment().items() if not key.startswith("GIT_")} | {
            "PYTHONPATH": "",
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        home.mkdir(exist_ok=True)
        (home / "gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.org\n", "utf-8")
        folder.mkdir(exist_ok=True)
        self.run("git", "init", "--quiet")

    def run(self, *command: str, code: int = 0) -> str:
        """Standard output and error of a command whose exit code is known."""
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == code, ran.stdout
        return ran.stdout

    def commit(self, files: dict[str, str], code: int = 0) -> str:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, "utf-8")
        self.run("git", "add", "--all")
        return self.run("git", "commit", "--message", "files", code=code)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with the hook installed, as README says, from a repository with this checkout's files."""
    folder = tmp_path_factory.mktemp("hook")
    # pre-commit builds the hook's environment from the registry: the build backend and four small libraries.
    probe = [sys.executable, "-m", "pip", "download", "--no-deps", "--retries", "0", "--timeout", "15", "--dest"]
    asked = subprocess.run([*probe, folder / "probe", "hatchling"], capture_output=True, timeout=120, check=False)
    if asked.returncode:
        pytest.skip("the package registry cannot be reached: pre-commit cannot build the hook's environment")
    hooks = Repository(folder / "dsgen", folder / "home")
    copy_sources(hooks.folder)
    hooks.run("git", "add", "--all")
    hooks.run("git", "commit", "--quiet", "--message", "dsgen")
    rev = hooks.run("git", "rev-parse", "HEAD").strip()
    user = Repository(folder / "project", folder / "home")
    config = CONFIG.format(hooks=hooks.folder, rev=rev)
    (user.folder / ".pre-commit-config.yaml").write_text(config, "utf-8")
    user.run(sys.executable, "-m", "pre_commit", "install", "--install-hooks")
    return user


def test_a_bad_commit_is_stopped_and_a_good_one_passes(project: Repository) -> None:
    said = project.commit(BAD, code=1)
    assert "configs/ds_config.json:3:23: error: fp16 and bf16 are both on" in said
    assert "[DS401 fp16-and-bf16]" in said
    assert "train.py:8:12: error: " in said
    assert "step-at-the-wrong-micro-batch]" in said
    assert "dsl.json" not in said
    assert project.run("git", "rev-list", "--all") == "", "nothing was committed"

    said = project.commit(GOOD)
    assert "Passed" in said
    assert len(project.run("git", "rev-list", "--all").splitlines()) == 1
