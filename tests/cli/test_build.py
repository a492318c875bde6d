"""``dsgen build``: what it writes where, what it prints, and what it leaves alone."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dsgen.cli import main

SPEC = """\
model: tinyllama-1.1b
hardware: {gpu: a100-80gb-sxm, gpus_per_node: 2, host_memory: 256GiB}
training:
  sequence_length: 2048
  global_batch: 16
  scheduler: {type: cosine, warmup_steps: 10, total_steps: 100}
"""
FOLDER = {
    "ds_config.json",
    "train.py",
    "model.py",
    "pretrained.py",
    "data.py",
    "tiny.py",
    "launch/torchrun.sh",
    "launch/deepspeed.sh",
}

Build = Callable[..., tuple[int, str, str]]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Build:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(SPEC, encoding="utf-8")

    def run(*arguments: str, spec: str = "spec.yaml") -> tuple[int, str, str]:
        code = main(["build", spec, *arguments])
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


def files(folder: str) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_file(build: Build) -> None:
    code, out, _ = build("-o", "ds_config.json")
    assert code == 0
    assert out.startswith("wrote ds_config.json\n")
    assert json.loads(Path("ds_config.json").read_text("utf-8"))["train_batch_size"] == 16
    assert files(".") == {"spec.yaml", "ds_config.json"}


@pytest.mark.parametrize("output", ["out", "out/", "a/b/out"])
def test_a_folder(build: Build, output: str) -> None:
    assert build("-o", output)[0] == 0
    assert files(output) == FOLDER
    assert os.access(f"{output}/launch/torchrun.sh", os.X_OK)
    assert not os.access(f"{output}/train.py", os.X_OK)


def test_a_folder_that_exists_may_have_a_suffix(build: Build) -> None:
    Path("run.v2").mkdir()
    assert build("-o", "run.v2")[0] == 0
    assert files("run.v2") == FOLDER


def test_what_lies_in_the_folder_stays(build: Build) -> None:
    Path("out").mkdir()
    Path("out/notes.txt").write_text("mine", encoding="utf-8")
    build("-o", "out")
    assert files("out") == {*FOLDER, "notes.txt"}


def test_two_builds_are_equal_byte_for_byte(build: Build) -> None:
    build("-o", "one")
    build("-o", "two")
    for name in FOLDER:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_without_output_the_config_can_be_piped(build: Build) -> None:
    code, out, err = build()
    assert code == 0
    assert json.loads(out)["gradient_clipping"] == 1.0
    assert "sequence_length" in err
    assert files(".") == {"spec.yaml"}


def test_json_names_the_files_and_what_they_cannot_say(build: Build) -> None:
    _, out, _ = build("-o", "ds_config.json", "--format", "json")
    answer = json.loads(out)
    assert answer["version"] == 1
    assert answer["files"] == [{"path": "ds_config.json", "text": None}]
    assert {"key", "value", "pass_as", "why"} == set(answer["not_carried"][0])
    assert answer["reasons"] is None


def test_json_without_output_holds_the_text(build: Build) -> None:
    (file,) = json.loads(build("--format", "json")[1])["files"]
    assert json.loads(file["text"])["train_batch_size"] == 16


def test_explain_gives_each_key_its_value_and_reason(build: Build) -> None:
    _, out, _ = build("-o", "ds_config.json", "--explain")
    lines = {line.split()[0]: line for line in out.splitlines() if line and not line.startswith(" ")}
    assert "16" in lines["train_batch_size"]
    assert "default changed" in lines["gradient_clipping"]
    # The planner's reason, not a placeholder.
    _, out, _ = build("--format", "json", "--explain")
    reasons = {reason["key"]: reason["why"] for reason in json.loads(out)["reasons"]}
    assert not [key for key, why in reasons.items() if why == "decided by the plan"]


class TestCheck:
    def test_agrees_with_what_was_written(self, build: Build) -> None:
        build("-o", "out")
        assert build("-o", "out", "--check")[:2] == (0, "")

    def test_shows_a_changed_line_and_writes_nothing(self, build: Build) -> None:
        build("-o", "ds_config.json")
        path = Path("ds_config.json")
        changed = path.read_text("utf-8").replace('"gradient_clipping": 1.0', '"gradient_clipping": 0.5')
        path.write_text(changed, encoding="utf-8")
        code, out, _ = build("-o", "ds_config.json", "--check")
        assert code == 1
        assert '-  "gradient_clipping": 0.5,' in out
        assert '+  "gradient_clipping": 1.0,' in out
        assert path.read_text("utf-8") == changed

    def test_names_an_absent_file(self, build: Build) -> None:
        build("-o", "out")
        Path("out/train.py").unlink()
        code, out, _ = build("-o", "out", "--check")
        assert code == 1
        assert "out/train.py: No such file or directory" in out

    def test_sees_line_ends_and_modes(self, build: Build) -> None:
        build("-o", "out")
        path = Path("out/data.py")
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        Path("out/launch/torchrun.sh").chmod(0o644)
        code, out, _ = build("-o", "out", "--check")
        assert code == 1
        assert "out/data.py" in out
        assert "out/launch/torchrun.sh: is not executable" in out

    def test_needs_something_to_compare_with(self, build: Build) -> None:
        code, _, err = build("--check")
        assert code == 2
        assert "-o" in err


class TestOverwriting:
    def test_a_file_keeps_its_mode(self, build: Build) -> None:
        Path("ds_config.json").touch(0o600)
        build("-o", "ds_config.json")
        assert stat.S_IMODE(Path("ds_config.json").stat().st_mode) == 0o600

    def test_a_new_file_has_the_callers_umask(self, build: Build) -> None:
        before = os.umask(0o027)
        try:
            build("-o", "out")
        finally:
            os.umask(before)
        assert stat.S_IMODE(Path("out/ds_config.json").stat().st_mode) == 0o640
        assert stat.S_IMODE(Path("out/launch/torchrun.sh").stat().st_mode) == 0o750

    def test_a_link_stays_a_link(self, build: Build) -> None:
        Path("real.json").write_text("old", encoding="utf-8")
        Path("link.json").symlink_to("real.json")
        assert build("-o", "link.json")[0] == 0
        assert Path("link.json").is_symlink()
        assert json.loads(Path("real.json").read_text("utf-8"))

    def test_a_loop_of_links(self, build: Build) -> None:
        Path("a.json").symlink_to("b.json")
        Path("b.json").symlink_to("a.json")
        code, _, err = build("-o", "a.json")
        assert code == 2
        assert "a.json" in err

    def test_never_the_spec(self, build: Build) -> None:
        Path("link.json").symlink_to("spec.yaml")
        os.link("spec.yaml", "hard.json")
        for name in ("spec.yaml", "link.json", "hard.json"):
            code, _, err = build("-o", name)
            assert code == 2
            assert "overwrite the spec" in err
        assert Path("spec.yaml").read_text("utf-8") == SPEC

    def test_all_or_nothing(self, build: Build) -> None:
        """One file that cannot be written keeps every other from being."""
        Path("out/launch/deepspeed.sh").mkdir(parents=True)
        Path("out/train.py").write_text("mine", encoding="utf-8")
        code, _, err = build("-o", "out")
        assert code == 2
        assert "deepspeed.sh: is a folder" in err
        assert files("out") == {"train.py"}
        assert Path("out/train.py").read_text("utf-8") == "mine"

    def test_a_missing_parent_is_named(self, build: Build) -> None:
        code, _, err = build("-o", "nowhere/ds_config.json")
        assert code == 2
        assert "there is no folder nowhere" in err
        assert "mkdir -p nowhere" in err


@pytest.mark.parametrize("output", ["", "a\0b", "x" * 300 + ".json"])
def test_names_that_no_file_can_have(build: Build, output: str) -> None:
    code, _, err = build("-o", output)
    assert code == 2
    assert "Traceback" not in err


class TestTemplates:
    CONFIG = "deepspeed/ds_config.json.j2"

    @pytest.fixture
    def template(self, build: Build) -> Path:
        path = Path("mine", self.CONFIG)
        path.parent.mkdir(parents=True)
        return path

    def test_a_users_template_replaces_the_shipped_one(self, build: Build, template: Path) -> None:
        template.write_text('{"stage": {{ config.zero_optimization.stage | tojson }}, "mine": true}\n', "utf-8")
        assert build("-o", "out", "--templates", "mine")[0] == 0
        assert json.loads(Path("out/ds_config.json").read_text("utf-8"))["mine"] is True
        assert files("out") == FOLDER

    def test_one_that_yields_no_json(self, build: Build, template: Path) -> None:
        template.write_text("{,}\n", "utf-8")
        code, _, err = build("-o", "ds_config.json", "--templates", "mine")
        assert code == 2
        assert "yields no JSON" in err
        assert not Path("ds_config.json").exists()

    def test_one_that_is_broken(self, build: Build, template: Path) -> None:
        template.write_text("{\n{% if %}\n}", "utf-8")
        code, _, err = build("-o", "ds_config.json", "--templates", "mine")
        assert code == 2
        assert f"mine/{self.CONFIG}:2" in err

    def test_a_folder_that_is_none(self, build: Build) -> None:
        code, _, err = build("--templates", "nowhere")
        assert code == 2
        assert "nowhere" in err


def test_a_format_that_does_not_exist(build: Build) -> None:
    code, _, err = build("--to", "megatron")
    assert code == 2
    assert "deepspeed" in err


def test_a_family_without_decoder_still_gets_its_config(build: Build) -> None:
    Path("spec.yaml").write_text(SPEC.replace("tinyllama-1.1b", "gemma-2-2b"), encoding="utf-8")
    assert build("-o", "ds_config.json")[0] == 0
    code, _, err = build("-o", "out")
    assert code == 1
    assert "caps its attention scores" in err
    assert not Path("out").exists()
