"""Specs that nobody should write, through the real command line.

Each must end in one clear message: exit 2 where the spec can't be read, exit 1 where it can be read
and is impossible; never a traceback, never a file left half-written.
"""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from console import dsgen

INJECTION = '"; __import__("os").system("touch owned"); x = "'


@dataclass(frozen=True)
class Hostile:
    """A spec, the exit code that it deserves, and what the message must say."""

    spec: str
    exit_code: int
    says: tuple[str, ...]


def spec(model: str = "llama-2-7b", hardware: str = "{gpu: a100-80gb-sxm, gpus_per_node: 8}", rest: str = "") -> str:
    return f"model: {model}\nhardware: {hardware}\n" + textwrap.dedent(rest)


HOSTILE = {
    # Malformed: exit 2, with file, line, column and what is allowed.
    "unknown key": Hostile(spec(rest="trainning: {global_batch: 8}"), 2, ("spec.yaml:3:1", "training")),
    "unknown model": Hostile(spec(model="llama-2-7bb"), 2, ("spec.yaml:1:8", "llama-2-7b")),
    "unknown gpu": Hostile(spec(hardware="{gpu: a100-80gb-sxn, gpus_per_node: 8}"), 2, ("spec.yaml:2:17", "a100-80gb")),
    "a list for a name": Hostile(spec(model="[llama-2-7b]"), 2, ("spec.yaml:1:8",)),
    "no hardware": Hostile("model: llama-2-7b\n", 2, ("spec.yaml", "hardware")),
    "zero gpus": Hostile(spec(hardware="{gpu: t4, gpus_per_node: 0}"), 2, ("spec.yaml:2:",)),
    "negative budget": Hostile(spec(rest="memory_budget: -80GiB"), 2, ("spec.yaml:3:16",)),
    "size without a unit that exists": Hostile(spec(rest="memory_budget: 80GXB"), 2, ("spec.yaml:3:16", "80GXB")),
    "stage seven": Hostile(spec(rest="want: {zero_stage: 7}"), 2, ("spec.yaml:3:20",)),
    "python tag": Hostile(spec(model='!!python/object/apply:os.system ["touch owned"]'), 2, ("spec.yaml:1:8",)),
    "alias bomb": Hostile(
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + spec(),
        2,
        ("spec.yaml:",),
    ),
    "duplicate key": Hostile(spec(rest="model: llama-2-13b"), 2, ("spec.yaml:3:1", "model")),
    "yaml that never closes": Hostile("model: {parameters: 7B\nhardware: [", 2, ("spec.yaml:",)),
    "a scalar for a spec": Hostile("llama-2-7b\n", 2, ("spec.yaml:1:1",)),
    "nothing at all": Hostile("", 2, ("spec.yaml",)),
    "not supported yet": Hostile(spec(rest="launch: {slurm: {partition: gpu}}"), 2, ("not supported yet",)),
    "sizes that contradict each other": Hostile(
        spec(model="{parameters: 70B, layers: 32, hidden: 4096, heads: 32, intermediate: 11008, vocab: 32000}"),
        2,
        ("spec.yaml:1:21", "6738415616"),
    ),
    # Well-formed and impossible: exit 1 with the reason.
    "405B on one T4": Hostile(
        spec(model="llama-3.1-405b", hardware="{gpu: t4, gpus_per_node: 1, host_memory: 32GiB}"),
        1,
        ("fits", "GiB", "over by"),
    ),
    "budget larger than the card": Hostile(spec(rest="memory_budget: 200GiB"), 1, ("spec.yaml:3:16", "GiB")),
    "batch that no ranks can share": Hostile(spec(rest="training: {global_batch: 13}"), 1, ("13", "8")),
    "parameter offload at stage 1": Hostile(
        spec(rest="want: {zero_stage: 1, offload_parameters: cpu}"), 1, ("offload_param", "3")
    ),
    "nvme without a drive": Hostile(spec(rest="want: {zero_stage: 3, offload_optimizer: nvme}"), 1, ("nvme",)),
    "bf16 on a card without it": Hostile(
        spec(
            model="llama-3.2-1b",
            hardware="{gpu: v100-32gb-sxm, gpus_per_node: 8}",
            rest="training: {precision: bf16}",
        ),
        1,
        ("bf16",),
    ),
    "tokens that no ranks can share": Hostile(
        spec(rest="training: {sequence_length: 4096, global_tokens: 4096}"),
        1,
        ("spec.yaml:3:50", "is 1 x 4096", "32768"),
    ),
    "a fall without an end": Hostile(
        spec(rest="training: {scheduler: {type: cosine, warmup_steps: 10}}"), 1, ("spec.yaml:3:23", "total_steps")
    ),
    "flash attention on a T4": Hostile(
        spec(model="gpt2", hardware="{gpu: t4}", rest="training: {attention: flash}"),
        1,
        ("spec.yaml:3:23", "8.0 (Ampere)", "attention: sdpa"),
    ),
    "a version that nothing is written for": Hostile(
        spec(rest="target: {versions: {deepspeed: 0.9.5}}"), 1, ("spec.yaml:3:32", "deepspeed 0.19 and newer")
    ),
    "a wish that does not fit": Hostile(
        spec(hardware="{gpu: t4, gpus_per_node: 1, host_memory: 32GiB}", rest="want: {zero_stage: 0}"), 1, ("GiB",)
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a spec lies alone; whatever a command leaves beside it shows."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE.keys())
def test_build_refuses_and_leaves_nothing(case: Hostile, folder: Path) -> None:
    (folder / "spec.yaml").write_text(case.spec, encoding="utf-8")
    ran = dsgen("build", "spec.yaml", "-o", "out", cwd=folder, timeout=60)
    assert ran.returncode == case.exit_code, ran.stderr
    assert ran.stdout == ""
    for words in case.says:
        assert words.lower() in ran.stderr.lower()
    assert [path.name for path in folder.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE.keys())
def test_plan_refuses_alike(case: Hostile, folder: Path) -> None:
    (folder / "spec.yaml").write_text(case.spec, encoding="utf-8")
    ran = dsgen("plan", "spec.yaml", cwd=folder, timeout=60)
    assert ran.returncode == case.exit_code, ran.stderr
    assert ran.stderr.startswith("dsgen: ")
    for words in case.says:
        assert words.lower() in ran.stderr.lower()


NAMES = {
    "python": INJECTION,
    "shell": "$(touch owned) `touch owned` ; touch owned #",
    "jinja": "{{ cycler.__init__.__globals__.os.system('touch owned') }}",
    "json": '", "optimizer": {"type": "Evil"}, "x": "',
    "newline": "a\nb",
    "quotes": "a'b\"c\\",
    "not ascii": "Москва ✓",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_path_stays_a_path(name: str, folder: Path) -> None:
    """A path of the user's reaches JSON, Python and shell as it is, and breaks out of none of them."""
    path = f"/scratch/{name}"
    nvme = f"{{path: {json.dumps(path)}, size: 4TB}}"
    text = spec(
        hardware=f"{{gpu: rtx-4090, gpus_per_node: 1, host_memory: 64GiB, nvme: {nvme}}}",
        rest="want: {zero_stage: 3, offload_optimizer: nvme}",
    )
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    ran = dsgen("build", "spec.yaml", "-o", "out", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    written = json.loads((folder / "out" / "ds_config.json").read_text("utf-8"))
    assert written["zero_optimization"]["offload_optimizer"]["nvme_path"] == path
    assert written["optimizer"]["type"] != "Evil"
    for script in (folder / "out").rglob("*.py"):
        compile(script.read_text("utf-8"), str(script), "exec")
    assert not list(folder.rglob("owned"))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_an_injected_model_name_is_just_unknown(name: str, folder: Path) -> None:
    (folder / "spec.yaml").write_text(spec(model=json.dumps(name)), encoding="utf-8")
    ran = dsgen("build", "spec.yaml", "-o", "out", cwd=folder)
    assert ran.returncode == 2
    assert "spec.yaml:1:8" in ran.stderr
    assert [path.name for path in folder.iterdir()] == ["spec.yaml"]


def test_a_huge_file_is_refused_at_once(folder: Path) -> None:
    (folder / "spec.yaml").write_text(spec() + "#" * (50 * 2**20), encoding="utf-8")
    ran = dsgen("plan", "spec.yaml", cwd=folder, timeout=20)
    assert ran.returncode == 2
    assert "spec.yaml" in ran.stderr


def test_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "spec.yaml").write_bytes(b"model: llama-2-7b\nhardware: \xff\xfe\n")
    ran = dsgen("plan", "spec.yaml", cwd=folder)
    assert ran.returncode == 2
    assert "UTF-8" in ran.stderr


def test_a_missing_spec_and_a_folder_for_one(folder: Path) -> None:
    for name in ("missing.yaml", "."):
        ran = dsgen("build", name, "-o", "out.json", cwd=folder)
        assert ran.returncode == 2
        assert name in ran.stderr
    assert list(folder.iterdir()) == []


class TestOutput:
    """Where the files should go is as hostile as what they should hold."""

    @pytest.fixture
    def spec_file(self, folder: Path) -> Path:
        path = folder / "spec.yaml"
        path.write_text(spec(), encoding="utf-8")
        return path

    def refused(self, folder: Path, output: str) -> str:
        ran = dsgen("build", "spec.yaml", "-o", output, cwd=folder)
        assert ran.returncode == 2, ran
        return ran.stderr

    def test_the_spec_itself(self, spec_file: Path, folder: Path) -> None:
        assert "spec.yaml" in self.refused(folder, "spec.yaml")
        assert spec_file.read_text("utf-8") == spec()

    def test_a_link_to_the_spec(self, spec_file: Path, folder: Path) -> None:
        (folder / "link.json").symlink_to("spec.yaml")
        ran = dsgen("build", "spec.yaml", "-o", "link.json", cwd=folder)
        assert spec_file.read_text("utf-8") == spec()
        assert ran.returncode in {0, 2}

    def test_a_file_used_as_a_folder(self, spec_file: Path, folder: Path) -> None:
        (folder / "file").write_text("mine", encoding="utf-8")
        assert "file" in self.refused(folder, "file/ds_config.json")
        assert (folder / "file").read_text("utf-8") == "mine"

    @pytest.mark.skipif(not Path("/proc/version").exists(), reason="/proc is the folder in which nobody can write")
    def test_a_folder_in_which_nobody_can_write(self, spec_file: Path, folder: Path) -> None:
        # Permissions would not stop root; /proc does.
        assert "/proc" in self.refused(folder, "/proc/ds_config.json")
        assert "/proc" in self.refused(folder, "/proc/new")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a Linux device")
    def test_a_full_device_leaves_nothing(self, spec_file: Path, folder: Path) -> None:
        ran = dsgen("build", "spec.yaml", "-o", "/dev/full", cwd=folder)
        assert ran.returncode in {0, 2}
        assert Path("/dev/full").is_char_device(), "a device must not be replaced by a file"

    def test_an_existing_file_survives_a_refusal(self, folder: Path) -> None:
        (folder / "spec.yaml").write_text(HOSTILE["a wish that does not fit"].spec, encoding="utf-8")
        (folder / "ds_config.json").write_text("{}", encoding="utf-8")
        ran = dsgen("build", "spec.yaml", "-o", "ds_config.json", cwd=folder)
        assert ran.returncode == 1
        assert (folder / "ds_config.json").read_text("utf-8") == "{}"
