"""Standard output and error that are closed, full, narrow or without Unicode: no traceback, the right exit code."""

import subprocess
import sys
from pathlib import Path

import pytest
from console import environment

SPEC = "model: {parameters: 1B}\nhardware: {gpu: a100-80gb-sxm, gpus_per_node: 8}\n"
COMMANDS = (
    "plan spec.yaml",
    "plan spec.yaml --format json",
    "build spec.yaml",
    "build spec.yaml -o ds_config.json",
    "build spec.yaml --format json",
    "show gpus",
    "lint old.json --fail-on never",
)


def shell(command: str, folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (folder / "old.json").write_text('{"train_batch_size": 8}', encoding="utf-8")
    ran = subprocess.run(
        ["sh", "-c", f'"$PYTHON" -m dsgen {command}'],
        cwd=folder,
        env=environment(PYTHON=sys.executable, **changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    out, err = ran.stdout.decode("utf-8", "replace"), ran.stderr.decode("utf-8", "replace")
    assert "Traceback" not in out + err, err
    assert "Exception ignored" not in err
    return subprocess.CompletedProcess(command, ran.returncode, out, err)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_behind_standard_output(command: str, tmp_path: Path) -> None:
    ran = shell(f"{command} > /dev/full", tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.endswith("dsgen: can't go on: No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_listens(command: str, tmp_path: Path) -> None:
    ran = shell(f"{command} >&- 2>&-", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
def test_an_error_that_cannot_be_said_keeps_its_exit_code_and_goes_nowhere_else(stream: str, tmp_path: Path) -> None:
    ran = shell(f"plan none.yaml {stream}", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "")


@pytest.mark.parametrize(
    "command",
    [
        "plan -",
        "build -",
        "estimate -",
        "convert - --to fsdp2",
        "lint -",
        "effective -",
        "upgrade - --from deepspeed==0.16.4 --to deepspeed==0.19.8",
        "init --from - -o -",
    ],
)
def test_standard_input_that_is_closed_is_said(command: str, tmp_path: Path) -> None:
    ran = shell(f"{command} <&-", tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "dsgen: <stdin>: there is no standard input" in ran.stderr


def test_nobody_answers(tmp_path: Path) -> None:
    ran = shell("init -o new.yaml <&-", tmp_path)
    assert ran.returncode == 2
    assert "nothing was written" in ran.stderr
    assert not (tmp_path / "new.yaml").exists()
    assert shell("init --here -o - <&-", tmp_path).returncode == 0


def test_the_folder_is_gone(tmp_path: Path) -> None:
    gone = "mkdir gone; cd gone; rmdir ../gone;"
    (tmp_path / "kept.yaml").write_text(SPEC, encoding="utf-8")
    for command in ("plan -", "build - -o x/", f"plan {tmp_path / 'kept.yaml'}"):
        ran = subprocess.run(
            ["sh", "-c", f'{gone} cat "$KEPT" | "$PYTHON" -m dsgen {command}'],
            cwd=tmp_path,
            env=environment(PYTHON=sys.executable, KEPT=str(tmp_path / "kept.yaml")),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode == (2 if "build" in command else 0), ran.stderr


@pytest.mark.parametrize("columns", ["0", "1", "20", "-5", "1000000"])
def test_off_a_terminal_no_width_cuts_a_plan(columns: str, tmp_path: Path) -> None:
    assert shell("plan spec.yaml", tmp_path, COLUMNS=columns).stdout == shell("plan spec.yaml", tmp_path).stdout


def test_a_file_name_commands_nothing_to_the_terminal(tmp_path: Path) -> None:
    for name, shown in (("\x1b[2Jx\ny", r"\x1b[2Jx\ny"), ("x\u202ey", r"x\u202ey"), ("grün", "grün")):
        ran = shell(f"plan '{name}.yaml'", tmp_path)
        assert (ran.returncode, ran.stderr) == (2, f"dsgen: {shown}.yaml: no such file\n")


def test_names_beyond_the_terminals_letters(tmp_path: Path) -> None:
    ran = shell("build spec.yaml -o '日本.json'", tmp_path, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert ran.stdout.startswith(r"wrote \u65e5\u672c.json")
    assert (tmp_path / "日本.json").is_file()


def test_a_library_that_is_not_installed_is_named(tmp_path: Path) -> None:
    # -S: without site-packages, as from a bare clone with a Python that has nothing.
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "dsgen", "plan", "spec.yaml"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert "is not installed" in ran.stderr
    assert "pip install" in ran.stderr
