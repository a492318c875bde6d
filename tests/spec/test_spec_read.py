"""What a spec says is what a person means by it."""

import io
from pathlib import Path
from typing import Any

import pytest

from dsgen.errors import Place
from dsgen.spec.read import read_spec, spec_from_mapping, spec_from_text
from dsgen.spec.values import (
    GpuNumbers,
    HardwareSpec,
    Interconnect,
    Method,
    ModelSizes,
    ModelSpec,
    NvmeSpec,
    Optimizer,
    Scheduler,
    Spec,
    TargetSpec,
    Training,
)

FULL = """\
# yaml-language-server: $schema=spec.schema.json
model: llama-3.1-8b
hardware:
  node: p4de.24xlarge
  gpu: {memory: 79.15GiB, bf16_tflops: 312, compute_capability: 8.0}
  gpus_per_node: 8
  nodes: 2
  interconnect: {gbit_s: 400, rdma: yes}
  host_memory: 1TiB
  nvme: {path: /local_nvme, size: 7TB}
  disk: 2TB
memory_budget: 72GiB
training:
  sequence_length: 4096
  global_tokens: 524288
  precision: BF16
  optimizer: {type: AdamW, lr: 2e-5, betas: [0.9, .95], eps: 1e-8, weight_decay: 0.1}
  scheduler: {type: cosine, warmup_steps: 100, total_steps: 1e4, min_lr_ratio: 0.1}
  gradient_clipping: 1
  method: {type: lora, rank: 8, alpha: 16, dropout: 0.05, targets: [q_proj, v_proj]}
  attention: flash
  loss: full
  compile: no
residents: []
want:
  zero_stage: 3
  offload_optimizer: cpu
  offload_parameters: none
  micro_batch: max
  accumulation: 4
  checkpointing: {every: 2}
  tensor_parallel: 1
launch: {}
target: {format: deepspeed, loaded_by: transformers, versions: {deepspeed: 0.19.8, torch: 2.10}}
"""


def minimal(rest: str = "", model: str = "gpt2", hardware: str = "{gpu: h100}") -> Spec:
    return spec_from_text(f"model: {model}\nhardware: {hardware}\n{rest}\n")


def test_every_key_arrives_as_meant(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(FULL, encoding="utf-8")
    spec = read_spec(str(path))
    assert spec == Spec(
        file=str(path),
        model=ModelSpec(name="llama-3.1-8b"),
        hardware=HardwareSpec(
            node="p4de.24xlarge",
            gpu=GpuNumbers(memory=int(79.15 * 2**30), bf16_tflops=312.0, compute_capability="8.0"),
            gpus_per_node=8,
            nodes=2,
            interconnect=Interconnect(gbit_s=400.0, rdma=True),
            host_memory=2**40,
            nvme=NvmeSpec(path="/local_nvme", size=7 * 10**12),
            disk=2 * 10**12,
        ),
        memory_budget=72 * 2**30,
        training=Training(
            sequence_length=4096,
            global_tokens=2**19,
            precision="bf16",
            optimizer=Optimizer(type="adamw", lr=2e-5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1),
            scheduler=Scheduler(type="cosine", warmup_steps=100, total_steps=10_000, min_lr_ratio=0.1),
            gradient_clipping=1.0,
            method=Method(type="lora", rank=8, alpha=16.0, dropout=0.05, targets=("q_proj", "v_proj")),
            attention="flash",
        ),
        want={
            "zero_stage": 3,
            "offload_optimizer": "cpu",
            "offload_parameters": "none",
            "micro_batch": "max",
            "accumulation": 4,
            "checkpointing": {"every": 2},
            "tensor_parallel": 1,
        },
        target=TargetSpec(loaded_by="transformers", versions={"deepspeed": "0.19.8", "torch": "2.10"}),
        places=spec.places,
    )


def test_only_model_and_hardware_are_required() -> None:
    spec = minimal()
    assert spec.model == ModelSpec(name="gpt2")
    assert spec.hardware == HardwareSpec(gpu="h100")
    assert (spec.memory_budget, spec.training, dict(spec.want), spec.target) == (None, Training(), {}, TargetSpec())


def test_sections_whose_every_line_is_commented_out_are_empty() -> None:
    spec = minimal("training:\n  # global_batch: 8\nwant:\ntarget: ~\nlaunch:\n")
    assert (spec.training, dict(spec.want), spec.target) == (Training(), {}, TargetSpec())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("lr: 2e-5", 2e-5),
        ("lr: 2E-5", 2e-5),
        ("lr: '2e-5'", 2e-5),
        ("lr: .00002", 2e-5),
        ("lr: 1", 1.0),
        ("lr: 0", 0.0),
        ("lr: 0x10", None),
        ("lr: 1:30", None),
        ("lr: 1,5", None),
    ],
)
def test_a_learning_rate_however_written(written: str, read: float | None) -> None:
    text = "training: {optimizer: {" + written + "}}"
    if read is None:
        with pytest.raises(Exception, match=r"training\.optimizer"):
            minimal(text)
    else:
        assert minimal(text).training.optimizer.lr == read


@pytest.mark.parametrize(
    ("written", "read"),
    # YAML 1.1 reads 010 as eight, 1_000 as a number and 5e8 as text; a person does not.
    [("8", 8), ("010", 10), ("1_000", 1000), ("1e3", 1000), ("5e8", 500_000_000), ('"16"', 16), ("8.0", 8), ("+8", 8)],
)
def test_a_whole_number_however_written(written: str, read: int) -> None:
    batch = minimal(f"training: {{global_batch: {written}}}").training.global_batch
    assert batch == read
    assert type(batch) is int


@pytest.mark.parametrize("written", ["2.10", "'2.10'", '"2.10"'])
def test_a_version_keeps_its_digits(written: str) -> None:
    assert minimal(f"target: {{versions: {{torch: {written}}}}}").target.versions == {"torch": "2.10"}


@pytest.mark.parametrize(
    ("written", "read"), [("yes", True), ("On", True), ("TRUE", True), ("no", False), ("off", False), ("false", False)]
)
def test_yes_and_no_where_a_yes_or_no_is_asked(written: str, read: bool) -> None:
    assert minimal(hardware=f"{{gpu: h100, interconnect: {{rdma: {written}}}}}").hardware.interconnect.rdma is read


@pytest.mark.parametrize("written", ["no", "on", "1e3", "2026-11-29", "0x10", "'null'", "3.10"])
def test_a_name_stays_a_name(written: str) -> None:
    assert minimal(model=written).model.name == written.strip("'")


def test_counts_of_parameters() -> None:
    sizes = minimal(model="{parameters: 7B, layers: 32, tied: off, mlp: GELU}").model.sizes
    assert sizes == ModelSizes(parameters=7 * 10**9, layers=32, tied=False, mlp="gelu")


@pytest.mark.parametrize(
    ("wish", "read"),
    [
        ("checkpointing: Full", "full"),
        ("checkpointing: {every: 3}", {"every": 3}),
        ("checkpointing: none", "none"),
        ("micro_batch: MAX", "max"),
        ("micro_batch: 4", 4),
        ("zero_stage: 0", 0),
    ],
)
def test_wishes(wish: str, read: object) -> None:
    assert list(minimal(f"want: {{{wish}}}").want.values()) == [read]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{lr: 1e-3}", Optimizer(lr=1e-3)),
        ("{type: Adam, betas: [0.8, 0.9]}", Optimizer(type="adam", betas=(0.8, 0.9))),
        ("{type: sgd, momentum: 0.9}", Optimizer(type="sgd", momentum=0.9)),
    ],
)
def test_optimizers(written: str, read: Optimizer) -> None:
    assert minimal(f"training: {{optimizer: {written}}}").training.optimizer == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{}", Method()),
        ("{type: lora}", Method(type="lora")),
        ("{type: lora, targets: all-linear}", Method(type="lora", targets="all-linear")),
        ("{type: lora, targets: [c_attn]}", Method(type="lora", targets=("c_attn",))),
    ],
)
def test_methods(written: str, read: Method) -> None:
    assert minimal(f"training: {{method: {written}}}").training.method == read


def after(text: str) -> Place:
    """Where FULL goes on after ``text``."""
    at = FULL.index(text) + len(text)
    return Place("s.yaml", FULL.count("\n", 0, at) + 1, at - FULL.rfind("\n", 0, at))


def test_places_are_those_of_the_values() -> None:
    spec = spec_from_text(FULL, "s.yaml")
    assert spec.place("model") == Place("s.yaml", 2, 8) == after("model: ")
    assert spec.place("hardware", "interconnect", "rdma") == after("rdma: ")
    assert spec.place("training", "optimizer", "betas", 1) == after("betas: [0.9, ")
    assert spec.place("want", "checkpointing", "every") == after("{every: ")
    # What is not written stands where its nearest parent does.
    assert spec.place("want", "pipeline_parallel") == after("want:\n  ")
    assert spec.place("nowhere") == Place("s.yaml", 2, 1)


def test_columns_count_characters() -> None:
    line = "hardware: {'gpu': h100, node: \"é😀\", nodes: 3}"
    spec = spec_from_text(f"model: 😀é\n{line}\n", "s.yaml")
    assert spec.model.name == "😀é"
    assert spec.place("hardware", "nodes") == Place("s.yaml", 2, line.index("3") + 1)


def test_a_line_break_that_is_written_as_one_is_kept_in_a_path_and_nowhere_else() -> None:
    spec = minimal(
        'target: {versions: {torch: "2.10\\n"}}',
        hardware='{gpu: {memory: "80GiB\\n", compute_capability: "8.0\\n"}, nvme: {path: "/a\\nb"}}',
    )
    assert spec.hardware.nvme == NvmeSpec(path="/a\nb")
    assert spec.hardware.gpu == GpuNumbers(memory=80 * 2**30, compute_capability="8.0")
    assert spec.target.versions == {"torch": "2.10"}


class TestModelPaths:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "models" / "mine").mkdir(parents=True)
        (tmp_path / "models" / "mine" / "config.json").write_text("{}")
        return tmp_path

    def model(self, folder: Path, written: str) -> ModelSpec:
        (folder / "spec.yaml").write_text(f"model: {written}\nhardware: {{gpu: h100}}\n")
        return read_spec(str(folder / "spec.yaml")).model

    @pytest.mark.parametrize(
        "written", ["./models/mine", "models/mine", "models/mine/config.json", "models/../models/mine"]
    )
    def test_relative_to_the_spec_wherever_we_are(
        self, folder: Path, written: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir("/")
        assert self.model(folder, written) == ModelSpec(path=folder / written)

    def test_absolute(self, folder: Path) -> None:
        assert self.model(folder, "/data/model") == ModelSpec(path=Path("/data/model"))

    def test_in_the_home_folder(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/someone")
        assert self.model(folder, "~/model") == ModelSpec(path=Path("/home/someone/model"))

    @pytest.mark.parametrize("name", ["models/other", "models", "meta-llama/Llama-3.1-8B", "a" * 300])
    def test_a_name_that_is_no_folder_of_a_model(self, folder: Path, name: str) -> None:
        assert self.model(folder, name) == ModelSpec(name=name)

    def test_the_path_is_absolute_though_the_spec_was_named_relatively(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.model(folder, "./models/mine")
        monkeypatch.chdir(folder)
        spec = read_spec("spec.yaml")
        assert spec.model.path == folder / "models/mine"
        assert spec.file == "spec.yaml"


class _Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", _Stdin(b"model: ./here\nhardware: {gpu: h100}\n"))
    spec = read_spec("-")
    assert spec.model.path == tmp_path / "here"
    assert spec.place("model") == Place("<stdin>", 1, 8)


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(Exception, match="there is no standard input"):
        read_spec("-")


@pytest.mark.parametrize(
    "mapping",
    [
        {"model": "é 😀", "hardware": {"gpu": {"memory": 80 * 10**9}}, "training": {"optimizer": {"lr": 2e-05}}},
        {"model": {"parameters": 7e9, "tied": True}, "hardware": {"gpu": "h100"}, "want": None},
    ],
)
def test_plain_values_are_a_spec_too(mapping: dict[str, Any]) -> None:
    spec = spec_from_mapping(mapping)
    if spec.model.sizes:
        assert spec.model.sizes == ModelSizes(parameters=7 * 10**9, tied=True)
    else:
        assert spec.model.name == "é 😀"
        assert spec.hardware.gpu == GpuNumbers(memory=80 * 10**9)
        assert spec.training.optimizer.lr == 2e-5


def test_a_home_that_nobody_knows_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nobody)
    spec = spec_from_text("model: ~/model\nhardware: {gpu: t4}\n", folder=Path("/specs"))
    assert spec.model.path == Path("/specs/~/model")
