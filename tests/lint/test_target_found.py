"""What a file is meant for, as its project tells: pins, what is installed, and the code beside the file."""

import json
import sys
from pathlib import Path

import pytest

from dsgen.cli import main
from dsgen.lint.project import forget, target_of_file
from dsgen.lint.settings import Settings
from dsgen.lint.target import LintTarget


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which nothing is said, where nothing is installed."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    Path("configs").mkdir()
    return tmp_path


def target(file: str = "configs/ds_config.json", **flags: str) -> LintTarget:
    forget()
    return target_of_file(file, flags, Settings())


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True, parents=True)
        Path(name).write_text(text, "utf-8")


LOCK = '[[package]]\nname = "deepspeed"\nversion = "{}"\nsource = {{}}\n'
PINS = {
    "uv.lock": LOCK.format("0.16.4"),
    "poetry.lock": LOCK.format("0.16.4"),
    "pylock.toml": LOCK.replace("package", "packages").format("0.16.4"),
    "pyproject.toml": '[project]\ndependencies = ["torch>=2", "deepspeed==0.16.4"]\n',
    "requirements.txt": "torch\ndeepspeed==0.16.4  # tried\n",
    "requirements-train.txt": "deepspeed[inf]==0.16.4 ; sys_platform == 'linux'\n",
    "requirements/train.txt": "DeepSpeed == 0.16.4\n",
    "environment.yml": "dependencies:\n  - python=3.11\n  - conda-forge::deepspeed=0.16.4\n",
    "environment.yaml": "dependencies:\n  - pip:\n    - deepspeed==0.16.4\n",
}


@pytest.mark.parametrize("name", PINS)
def test_pins(name: str) -> None:
    write({name: PINS[name]})
    found = target()
    assert found.deepspeed == (0, 16, 4)
    assert found.stated
    assert found.library == f"DeepSpeed 0.16.4 ({Path(name).name})"


def test_poetry_pins_by_a_bare_version() -> None:
    write({"pyproject.toml": '[tool.poetry.dependencies]\ndeepspeed = "0.16.4"\n'})
    assert target().deepspeed == (0, 16, 4)


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "deepspeed>=0.16.4\n"},
        {"requirements.txt": "deepspeed==0.16.*\n"},
        {"requirements.txt": "# deepspeed==0.16.4\n"},
        {"requirements.txt": "deepspeed-mii==0.1.2\n"},
        {"requirements.txt": "deepspeed==0.16.4\n", "requirements-dev.txt": "deepspeed==0.15.0\n"},
        {"pyproject.toml": '[project]\ndependencies = [\n  # "deepspeed==0.16.4",\n  "deepspeed~=0.16.4"]\n'},
        {"pyproject.toml": '[tool.poetry.dependencies]\ndeepspeed = "^0.16.4"\n'},
        {"environment.yml": "dependencies:\n  - deepspeed>=0.16.4\n"},
        {"uv.lock": '[[package]]\nname = "deepspeed-kernels"\nversion = "0.0.1"\n'},
    ],
)
def test_what_is_open_is_not_guessed(files: dict[str, str]) -> None:
    write(files)
    found = target()
    assert not found.stated
    assert "the newest known" in found.library


def test_order() -> None:
    write({"requirements.txt": "deepspeed==0.15.0\n", "uv.lock": LOCK.format("0.16.4")})
    assert target().deepspeed == (0, 16, 4), "the lock file is nearer to what runs"
    write({"configs/requirements.txt": "deepspeed==0.14.0\n"})
    assert target().deepspeed == (0, 14), "the nearer folder counts"
    assert target(deepspeed="0.17.1").deepspeed == (0, 17, 1), "a flag decides"
    assert target(deepspeed="0.17.1").library == "DeepSpeed 0.17.1"


def test_nothing_is_taken_from_beyond_the_repository(project: Path) -> None:
    write({"requirements.txt": "deepspeed==0.15.0\n", "inner/.git/HEAD": "", "inner/ds.json": "{}"})
    assert not target("inner/ds.json").stated


def test_what_is_installed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "site" / "deepspeed-0.16.9+cu121.dist-info").mkdir(parents=True)
    (project / "site" / "deepspeed_mii-0.1.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(project / "nowhere"), str(project / "site")])
    assert target().library == "DeepSpeed 0.16.9 (installed)"
    assert not target().stated, "the file may be older than what is installed: what that removed is no error"
    write({"requirements.txt": "deepspeed==0.15.0\n"})
    assert target().library == "DeepSpeed 0.15.0 (requirements.txt)"
    assert target().stated


TOLD = {
    "deepspeed": [
        ("train.py", 'engine, *_ = deepspeed.initialize(model=m, model_parameters=m.parameters(), config="{}")'),
        ("run.sh", "deepspeed train.py --deepspeed --deepspeed_config {}"),
    ],
    "transformers": [
        ("train.py", 'args = TrainingArguments("out", bf16=is_on(), deepspeed="{}")'),
        ("train.py", "args = SFTConfig(\n    output_dir=str(out),\n    deepspeed='{}',\n)"),
        ("run.sh", "torchrun train.py \\\n  --deepspeed {} \\\n  --bf16"),
    ],
    "accelerate": [
        ("train.py", 'plugin = DeepSpeedPlugin(hf_ds_config="{}")'),
        ("accelerate.yaml", "deepspeed_config:\n  deepspeed_config_file: {}\n"),
        ("run.sh", "accelerate launch --deepspeed_config_file={} train.py"),
    ],
    "lightning": [("train.py", 'trainer = Trainer(strategy=DeepSpeedStrategy(config="{}"))')],
}


@pytest.mark.parametrize(("loader", "name", "text"), [(who, *one) for who, told in TOLD.items() for one in told])
@pytest.mark.parametrize("folder", [".", "configs"])
def test_loaders(loader: str, name: str, text: str, folder: str) -> None:
    write({f"{folder}/{name}": text.format("configs/ds_config.json")})
    assert target().loaded_by == loader
    assert target("configs/other_ds_config.json").loaded_by is None
    assert target("configs/ds_config.js").loaded_by is None
    assert target(loaded_by="lightning").loaded_by == "lightning"


def test_two_loaders_are_no_answer() -> None:
    write({"train.py": TOLD["deepspeed"][0][1].format("ds_config.json")})
    assert target().loaded_by == "deepspeed"
    write({"run.sh": TOLD["transformers"][2][1].format("ds_config.json")})
    assert target().loaded_by is None


def test_isolated_asks_nobody() -> None:
    write({"requirements.txt": "deepspeed==0.15.0\n", "train.py": TOLD["deepspeed"][0][1].format("ds_config.json")})
    found = target_of_file("configs/ds_config.json", {}, Settings(), isolated=True)
    assert (found.stated, found.loaded_by) == (False, None)


def test_the_version_found_decides_what_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    write({"configs/ds_config.json": '{"train_batch_size": 8, "aio": {"thread_count": 4}}'})
    for version, expected in {"0.16.3": [], "0.16.4": ["DS114"]}.items():
        write({"requirements.txt": f"deepspeed=={version}\n"})
        main(["lint", "configs/ds_config.json", "--format", "json"])
        assert [finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]] == expected
