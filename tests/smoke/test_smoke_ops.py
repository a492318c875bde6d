"""Which ops are built, where, and what is said when they can't be."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from smoke_helpers import CPU, config

from dsgen.errors import DsgenError, MissingToolError
from dsgen.processes.session import tool
from dsgen.smoke import ops
from dsgen.smoke.values import Options

SHM = "deepspeed_shm_comm"
TORCH_ADAM = {"type": "AdamW", "params": {"torch_adam": True}}
OFFLOAD = {"offload_optimizer": {"device": "cpu"}}
NVME = {"offload_param": {"device": "nvme"}}

# Seen with DeepSpeed 0.19.8: engine.py (get_optimizer_configuration), comm/torch.py, swap_tensor/.
NEEDED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "torch's Adam": (config(1, optimizer=TORCH_ADAM), [SHM]),
    "fused Adam": (config(1), [SHM, "fused_adam"]),
    "Adam offloaded": (config(2, zero=OFFLOAD), [SHM, "cpu_adam"]),
    "Adam offloaded, by its old name": (config(2, zero={"cpu_offload": True}), [SHM, "cpu_adam"]),
    "torch's Adam offloaded": (config(2, zero=OFFLOAD, optimizer=TORCH_ADAM), [SHM]),
    "Adagrad": (config(2, optimizer={"type": "Adagrad"}), [SHM]),
    "Adagrad offloaded": (config(2, zero=OFFLOAD, optimizer={"type": "Adagrad"}), [SHM, "cpu_adagrad"]),
    "NVMe": (config(3, zero=NVME, optimizer=TORCH_ADAM), [SHM, "async_io"]),
    "sections of a wrong type": ({"optimizer": "AdamW", "zero_optimization": True}, [SHM]),
}


@pytest.mark.parametrize(("content", "expected"), NEEDED.values(), ids=NEEDED.keys())
def test_needed(content: dict[str, Any], expected: list[str]) -> None:
    assert ops.needed(content, CPU) == expected
    assert ops.needed(content, replace(CPU, device="cuda", devices=1)) == expected[1:]


def test_each_set_of_libraries_has_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machines = [CPU, replace(CPU, torch="2.12.0"), replace(CPU, deepspeed="0.18.0"), replace(CPU, libraries=("/b",))]
    folders = {ops.extensions_folder(machine) for machine in machines}
    assert len(folders) == 4
    assert all(folder.is_relative_to(tmp_path / "dsgen") for folder in folders)


def test_the_users_choice_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert ops.extensions_folder(CPU) == tmp_path


def prepare(folder: Path) -> Path:
    return ops.prepare([SHM], CPU, Options(), folder, print)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingToolError, match=r"no C\+\+ compiler \(no-such-compiler\)"):
        prepare(tmp_path)


def test_no_ninja(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setattr(ops, "tool", lambda name: None if name == "ninja" else name)
    with pytest.raises(MissingToolError, match="no ninja"):
        prepare(tmp_path)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of an op that ninja has built of one object."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    folder = tmp_path / SHM
    folder.mkdir()
    (folder / "build.ninja").write_text("rule make\n  command = touch $out\nbuild shm.o: make\n", "utf-8")
    ninja = tool("ninja")
    assert ninja is not None
    subprocess.run([ninja], cwd=folder, capture_output=True, check=True)
    ops._stamp(tmp_path, SHM).write_text(ops._key(CPU), "utf-8")
    return folder


def test_what_is_built_is_not_built_again(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "_build", lambda *_: pytest.fail("built again"))
    assert prepare(built.parent) == built.parent


def test_what_a_killed_rebuild_took_away_is_built_before_the_ranks_start(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built / "shm.o").unlink()
    asked: list[object] = []
    monkeypatch.setattr(ops, "_build", lambda missing, *_: asked.append(missing))
    prepare(built.parent)
    assert asked == [[SHM]]


def test_what_another_environment_built_last_is_built_again(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that two share (TORCH_EXTENSIONS_DIR), also where the versions are the same."""
    asked: list[object] = []
    monkeypatch.setattr(ops, "_build", lambda missing, *_: asked.append(missing))
    elsewhere = replace(CPU, libraries=("/another/site-packages",))
    for machine in (elsewhere, elsewhere, CPU, CPU):
        ops.prepare([SHM], machine, Options(), built.parent, print)
    assert asked == [[SHM], [SHM]]


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "file" / "extensions"))
    with pytest.raises(DsgenError, match="no ops can be built in"):
        prepare(tmp_path)
