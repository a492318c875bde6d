"""The dialogue of dsgen init: answers from a pipe, defaults, wrong answers, and nothing half-written."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from console import dsgen, environment

from dsgen.cli import main
from dsgen.errors import InputError
from dsgen.init.dialogue import QUESTIONS, ask
from dsgen.init.values import Findings

DEFAULTS = "\n" * len(QUESTIONS)


class Terminal(io.StringIO):
    """Standard input of somebody who sits there."""

    def isatty(self) -> bool:
        return True


def answered(text: str) -> Findings:
    return ask({}, io.StringIO(text), lambda _text: None)


def test_empty_lines_take_the_defaults_and_the_spec_is_planned(tmp_path: Path) -> None:
    made = dsgen("init", cwd=tmp_path, stdin=DEFAULTS)
    assert (made.returncode, made.stdout) == (0, "wrote spec.yaml\n")
    spec = yaml.safe_load((tmp_path / "spec.yaml").read_text(encoding="utf-8"))
    assert spec == {
        "model": "llama-3.1-8b",
        "hardware": {"gpu": "h100-80gb-sxm", "gpus_per_node": 8, "nodes": 1},
        "training": {"sequence_length": 4096, "method": {"type": "full"}},
    }
    assert dsgen("plan", "spec.yaml", cwd=tmp_path).returncode == 0


def test_answers_stand_in_the_spec_each_with_its_meaning(tmp_path: Path) -> None:
    made = dsgen("init", cwd=tmp_path, stdin="7B\na10g\n4\n2\n1024\n64\nLoRA\n")
    assert made.returncode == 0
    text = (tmp_path / "spec.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == {
        "model": {"parameters": "7B"},
        "hardware": {"gpu": "a10g", "gpus_per_node": 4, "nodes": 2},
        "training": {"sequence_length": 1024, "global_batch": 64, "method": {"type": "lora"}},
    }
    given = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#") and ": " in line]
    assert all("  # " in line for line in given), text
    assert "# zero_stage: 3" in text  # what one could ask for next
    assert dsgen("plan", "spec.yaml", cwd=tmp_path).returncode == 0


def test_a_node_answers_how_many_gpus_it_has() -> None:
    found = answered("llama-2-7b\np4de.24xlarge\n2\n\n\n\n")
    assert found.get("hardware", "node") == "p4de.24xlarge"
    assert found.get("hardware", "nodes") == 2
    assert found.get("hardware", "gpu") is None
    assert found.get("hardware", "gpus_per_node") is None


def test_the_default_length_is_the_models_where_that_is_shorter() -> None:
    said: list[str] = []
    ask({}, io.StringIO("gpt2\n" + DEFAULTS), said.append)
    assert any(text.startswith("Tokens per sequence [1024]") for text in said)


@pytest.mark.parametrize("lines", range(len(QUESTIONS)))
def test_answers_that_end_too_soon_leave_nothing(lines: int, tmp_path: Path) -> None:
    made = dsgen("init", cwd=tmp_path, stdin="\n" * lines)
    assert made.returncode == 2
    assert "nothing was written" in made.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("lama-3\n", "no model is called 'lama-3'; did you mean"),
        ("./nowhere\n", "nowhere"),
        ("\nh1000\n", "no GPU or node is called 'h1000'"),
        ("\n\nmany\n", "'many' is no whole number"),
        ("\n\n0\n", "0 is not between 1 and"),
        ("\n\n\n\n\n\nprefix\n", "is not full, lora or qlora"),
        ("\x1b[2J\n", "a character that has no place in a spec"),
    ],
)
def test_a_wrong_answer_from_a_pipe_is_refused_with_what_to_write(answers: str, said: str, tmp_path: Path) -> None:
    made = dsgen("init", cwd=tmp_path, stdin=answers)
    assert made.returncode == 2
    assert said in made.stderr
    assert "\x1b" not in made.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape", "latin-1"])
def test_bytes_that_are_no_text_are_refused_in_every_locale(encoding: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "dsgen", "init"],
        cwd=tmp_path,
        env={**environment(), "PYTHONIOENCODING": encoding},
        input=b"\xff\xfe\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr
    assert b"nothing was written" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_at_a_terminal_a_wrong_answer_is_asked_for_again() -> None:
    said: list[str] = []
    found = ask({}, Terminal("lama-3\nllama-2-7b\n" + DEFAULTS), said.append)
    assert found.get("model") == "llama-2-7b"
    assert sum(text.startswith("Model") for text in said) == 2


def test_what_is_known_is_not_asked() -> None:
    known = {question.path: "x" for question in QUESTIONS}
    assert ask(known, io.StringIO(""), lambda _text: None).given == ()
    with pytest.raises(InputError):
        ask({}, io.StringIO(""), lambda _text: None)


def test_the_gpus_that_are_here_are_the_default(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "nvidia-smi"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'NVIDIA L40S, 46068, 8.9'\necho 'NVIDIA L40S, 46068, 8.9'\n", encoding="utf-8")
    fake.chmod(0o755)
    env = environment()
    made = dsgen("init", "-o", "-", cwd=tmp_path, stdin=DEFAULTS, env={**env, "PATH": f"{fake.parent}:{env['PATH']}"})
    assert made.returncode == 0
    assert "GPU or node [l40s]" in made.stderr
    assert yaml.safe_load(made.stdout)["hardware"] == {"gpu": "l40s", "gpus_per_node": 2, "nodes": 1}


def test_flags_are_answers_given_beforehand(tmp_path: Path) -> None:
    flags = ["--model", "llama-2-7b", "--gpu", "a100", "--gpus-per-node", "4", "--nodes", "1"]
    flags += ["--sequence-length", "2048", "--method", "full", "--global-batch", "32"]
    made = dsgen("init", *flags, "-o", "-", cwd=tmp_path)
    assert made.returncode == 0
    assert yaml.safe_load(made.stdout)["training"]["sequence_length"] == 2048
    wrong = dsgen("init", "--gpu", "a1000", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--gpu: no GPU or node is called" in wrong.stderr


def test_a_file_that_exists_is_left_alone_and_nothing_is_asked(tmp_path: Path) -> None:
    target = tmp_path / "spec.yaml"
    target.write_text("mine", encoding="utf-8")
    made = dsgen("init", cwd=tmp_path, stdin=DEFAULTS)
    assert made.returncode == 2
    assert "exists already" in made.stderr
    assert "Model" not in made.stderr
    assert target.read_text(encoding="utf-8") == "mine"
    assert dsgen("init", "--force", cwd=tmp_path, stdin=DEFAULTS).returncode == 0
    assert target.read_text(encoding="utf-8").startswith("# A spec")
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize("output", [".", "nowhere/spec.yaml"])
def test_a_place_that_can_not_be_written_is_said(output: str, tmp_path: Path) -> None:
    made = dsgen("init", "-o", output, cwd=tmp_path, stdin=DEFAULTS)
    assert made.returncode == 2
    assert output in made.stderr


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert dsgen("init", cwd=tmp_path, stdin=DEFAULTS).returncode == 2
    assert not (tmp_path / "elsewhere.yaml").exists()


def test_interrupted_while_it_asks_it_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dsgen", "init"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), True)
    assert process.stderr.read(5) == b"Model"  # it waits for an answer now
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_from_and_answers_together_ask_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ds.json").write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 1}}', encoding="utf-8")
    assert main(["init", "--from", "ds.json", "--model", "llama-2-7b", "--gpu", "a100", "--gpus-per-node", "8"]) == 0
    seen = capsys.readouterr()
    assert "a plan needs it" not in seen.err
    assert main(["plan", "spec.yaml"]) in (0, 1)
