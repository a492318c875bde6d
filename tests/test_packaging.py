"""dsgen works however it came: wheel, sdist, editable, bare clone; from any folder."""

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from console import ROOT, copy_sources, dsgen, environment

EXAMPLE = ROOT / "examples" / "llama-2-7b-8xa100"


def run(*command: str | Path, cwd: Path) -> str:
    """Runs without the checkout on the path; returns what was printed."""
    env = environment(PYTHONPATH="", PYTHONSAFEPATH="1")
    ran = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clone")
    copy_sources(folder)
    return folder


@pytest.fixture(scope="module")
def built(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, and the wheel made from it: so the sdist is complete."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=sources)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


def fresh_venv(folder: Path) -> Path:
    """A virtual environment in which the running one's libraries are visible, but not dsgen itself."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = (folder / "lib").glob("python*/site-packages")
    # Only the folder is added: its own .pth files (an editable dsgen, say) are not followed.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def pip_install(python: Path, *arguments: str | Path) -> None:
    # The running pip works on the other environment; nothing is fetched.
    pip = (sys.executable, "-m", "pip", "--python", python, "install")
    run(*pip, "--quiet", "--no-deps", "--no-index", "--no-build-isolation", *arguments, cwd=ROOT.parent)


def assert_builds(program: tuple[str | Path, ...], folder: Path) -> None:
    """Builds the example from ``folder``, which holds nothing of ours."""
    run(*program, "build", EXAMPLE / "spec.yaml", "-o", "ds_config.json", cwd=folder)
    assert (folder / "ds_config.json").read_bytes() == (EXAMPLE / "ds_config.json").read_bytes()
    assert "llama-2-7b" in run(*program, "show", "models", cwd=folder)


def test_wheel_holds_what_dsgen_reads(built: dict[str, Path], sources: Path) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = set(wheel.namelist())
    expected = {
        (Path("dsgen") / path.relative_to(sources)).as_posix()
        for folder in ("schemas", "templates")
        for path in (sources / folder).rglob("*")
        if path.is_file()
    }
    expected |= {
        path.relative_to(sources).as_posix()
        for path in (sources / "dsgen").rglob("*")
        if path.suffix in {".py", ".csv"}
    }
    assert {"dsgen/schemas/spec.schema.json", "dsgen/facts/gpus.csv"} <= expected
    assert expected - names == set()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    others = {name for name in names if not name.startswith(("dsgen/", "dsgen-"))}
    assert others == set(), "a wheel puts nothing but dsgen into site-packages"


def test_sdist_holds_what_tests_need(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {
        "LICENSE",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "pyproject.toml",
        ".ci/run",
        "schemas/spec.schema.json",
        "tests/test_packaging.py",
        "tests/constraints.txt",
        "examples/llama-2-7b-8xa100/spec.yaml",
    }
    assert wanted - names == set()


def test_installed_wheel_builds(built: dict[str, Path], tmp_path: Path) -> None:
    python = fresh_venv(tmp_path / "venv")
    pip_install(python, built["wheel"])
    where = run(python, "-c", "import dsgen; print(dsgen.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(tmp_path / "venv")
    assert_builds((tmp_path / "venv" / "bin" / "dsgen",), tmp_path)


def test_editable_install_builds(sources: Path, tmp_path: Path) -> None:
    python = fresh_venv(tmp_path / "venv")
    pip_install(python, "--editable", sources)
    where = run(python, "-c", "import dsgen; print(dsgen.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(sources)
    assert_builds((tmp_path / "venv" / "bin" / "dsgen",), tmp_path)


def test_bare_clone_builds(tmp_path: Path) -> None:
    ran = dsgen("build", EXAMPLE / "spec.yaml", "-o", "ds_config.json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "ds_config.json").read_bytes() == (EXAMPLE / "ds_config.json").read_bytes()
