"""``build -o``: what is neither a file nor a folder, and a build that is stopped."""

import os
import signal
import stat
from pathlib import Path

import pytest

from dsgen.cli import main

SPEC = "model: {parameters: 1B}\nhardware: {gpu: a100-80gb-sxm, gpus_per_node: 2}\n"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(SPEC, encoding="utf-8")
    return "spec.yaml"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).symlink_to("/dev/null")])
@pytest.mark.parametrize("name", ["pipe", "pipe.json"])
def test_what_is_no_ordinary_file_is_left_alone(
    make: object, name: str, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(name)  # type: ignore[operator]
    before = stat.S_IFMT(Path(name).stat().st_mode)
    assert main(["build", spec, "-o", name]) == 2
    assert f"{name}: is no ordinary file\n  help: leave -o out" in capsys.readouterr().err
    assert stat.S_IFMT(Path(name).stat().st_mode) == before


def test_a_dash_is_standard_output(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", spec, "-o", "-"]) == 0
    dashed = capsys.readouterr().out
    assert main(["build", spec]) == 0
    assert dashed == capsys.readouterr().out
    assert [path.name for path in Path().iterdir()] == [spec]


@pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit), (signal.SIGINT, None)]
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_stopped_in_the_middle_no_temporary_file_stays(
    number: signal.Signals, ends: type[BaseException] | None, call: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, call, lambda *_: os.kill(os.getpid(), number))
    if ends is None:
        assert main(["build", spec, "-o", "out/"]) == 128 + number
    else:
        with pytest.raises(ends) as raised:
            main(["build", spec, "-o", "out/"])
        assert raised.value.code == 128 + number  # type: ignore[attr-defined]
    assert not [path for path in Path("out").rglob("*") if path.is_file()]
