"""``dsgen lsp`` before it serves: the extra that it needs, and its flags. How it serves: tests/lsp."""

from pathlib import Path

import pytest
from console import ROOT, dsgen, environment


def test_without_its_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "lsprotocol.py").write_text("raise ModuleNotFoundError('none', name='lsprotocol')\n", "utf-8")
    ran = dsgen("lsp", cwd=tmp_path, env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the language server needs lsprotocol, which is not installed" in ran.stderr
    assert "help: pip install 'dsgen[lsp]'" in ran.stderr


@pytest.mark.parametrize("address", ["localhost", ":80", "localhost:", "localhost:0", "localhost:x", "localhost:65536"])
def test_a_wrong_address(address: str, tmp_path: Path) -> None:
    ran = dsgen("lsp", "--tcp", address, cwd=tmp_path)
    assert ran.returncode == 2
    assert "is not HOST:PORT" in ran.stderr


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    pytest.importorskip("pygls", reason="pip install 'dsgen[lsp]'")
    ran = dsgen("lsp", "--tcp", "203.0.113.1:2087", cwd=tmp_path)  # an address that nobody's machine has (RFC 5737)
    assert ran.returncode == 2
    assert "can't go on" in ran.stderr
