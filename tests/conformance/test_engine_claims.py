"""What rules say of parts that need each other, the engine says too: it raises there, or trains all the same.

One rank on the CPU; what needs several ranks, GPUs or NVMe is read in the sources only, as each rule's page tells.
"""

from pathlib import Path
from typing import Any

import pytest
from deepspeed_configs import lint
from one_rank import one_rank

from dsgen.facts.versions import libraries
from dsgen.lint.target import make_target
from dsgen.smoke.ops import prepare
from dsgen.smoke.probe import probe
from dsgen.smoke.values import Options

TARGET = make_target(libraries()["deepspeed"].executed, "deepspeed", world_size=1)

SGD = {"type": "SGD", "params": {"lr": 0.1}}
BASE: dict[str, Any] = {"train_batch_size": 1, "optimizer": SGD, "zero_allow_untested_optimizer": True}
BF16 = {"bf16": {"enabled": True}}
CPU = {"device": "cpu"}
TORCH_ADAM = {"type": "AdamW", "params": {"lr": 0.1, "torch_adam": True}}


def zero(stage: int, **keys: Any) -> dict[str, Any]:
    return {"zero_optimization": {"stage": stage, **keys}}


# code and name -> what is added to the base, and a word of what the engine raises.
RAISES: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("DS312", "BF16_Optimizer without its norm"): (
        {
            **BF16,
            **zero(1, compute_grad_norm=False),
            "gradient_clipping": 0,
            "data_types": {"grad_accum_dtype": "fp32"},
        },
        "compute_grad_norm=false does not support ZeRO Stage 1",
    ),
    ("DS314", "no offload"): (zero(2, zenflow={"topk_ratio": 0.1}), "Zenflow must be used with cpu offload"),
    ("DS316", "overlap at stage 1"): (
        {**zero(1, overlap_comm=True), "managed_gradient_accumulation": False},
        "overlap_comm only with ZeRO stage 2",
    ),
    ("DS318", "odd"): (zero(2, allgather_bucket_size=200_000_001), "nccl_start_alignment_factor"),
    ("DS407", "on the GPU"): (
        {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}, **zero(2), "optimizer": TORCH_ADAM},
        "Master weights feature requires",
    ),
    ("DS308", "an optimizer of torch"): (
        zero(3, offload_optimizer={**CPU, "ratio": 0.5}),
        "Hybrid Optimizer Only Supports DeepSpeedCPUAdam",
    ),
    ("DS408", "fp16"): ({**BF16, "data_types": {"param_dtype": "fp16"}}, "conflicts with the"),
    ("DS409", "stage 0"): ({**BF16, "data_types": {"grad_accum_dtype": "fp32"}}, "unsupported mix"),
    ("DS509", "loss scale"): (
        {"optimizer": {"type": "Lamb", "params": {"lr": 0.1}}, "fp16": {"enabled": False, "loss_scale": 128}},
        "requires dynamic loss scaling",
    ),
    ("DS511", "reduce_scatter"): (
        {"optimizer": {"type": "Muon", "params": {"lr": 0.1}}, **zero(3)},
        "Muon and reduce scatter cannot be used together",
    ),
    ("DS605", "ranks"): ({"tensor_parallel": {"autotp_size": 3}}, "AssertionError"),
}

# What the engine takes without a word.
TRAINS: dict[tuple[str, str], dict[str, Any]] = {
    ("DS317", "pipeline section alone"): {"pipeline": {"activation_checkpoint_interval": 1}, **zero(2)},
    ("DS322", "max_live_parameters"): zero(3, stage3_max_live_parameters=0),
    ("DS323", "persistence"): zero(3, stage3_param_persistence_threshold=10**9),
    ("DS801", "the level above"): {"data_efficiency": {"data_sampling": {"enabled": True}}},
    ("DS803", "without deepcompile"): {"compile": {"offload_activation": True}},
}

# Where DeepSpeed only does more work than it must: advice.
ADVISED: dict[tuple[str, str], dict[str, Any]] = {("DS324", "sub_group_size"): zero(3, sub_group_size=0)}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str | None]:
    folder = tmp_path_factory.mktemp("claims")
    options = Options(device="cpu")
    extensions = prepare(["deepspeed_shm_comm"], probe(options, False, False, folder), options, folder, print)
    added = {key: config for key, (config, _) in RAISES.items()} | TRAINS | ADVISED
    got = one_rank("deepspeed_engine.py", [{**BASE, **config} for config in added.values()], extensions, 300)
    return dict(zip(added, got, strict=True))


@pytest.mark.parametrize("key", RAISES, ids=" ".join)
def test_the_engine_raises(key: tuple[str, str], said: dict[tuple[str, str], str | None]) -> None:
    config, word = RAISES[key]
    assert word in str(said[key])
    errors = {finding.code for finding in lint({**BASE, **config}, TARGET) if finding.severity == "error"}
    assert key[0] in errors


@pytest.mark.parametrize("key", TRAINS, ids=" ".join)
def test_the_engine_trains(key: tuple[str, str], said: dict[tuple[str, str], str | None]) -> None:
    assert said[key] is None
    findings = [finding for finding in lint({**BASE, **TRAINS[key]}, TARGET) if finding.severity != "info"]
    assert {(finding.code, finding.severity) for finding in findings} == {(key[0], "warning")}


@pytest.mark.parametrize("key", ADVISED, ids=" ".join)
def test_the_engine_trains_where_advice_is_given(key: tuple[str, str], said: dict[tuple[str, str], str | None]) -> None:
    assert said[key] is None
    findings = lint({**BASE, **ADVISED[key]}, TARGET)
    assert {finding.severity for finding in findings} == {"info"}
    assert key[0] in {finding.code for finding in findings}


SIZED = {"train_batch_size": 1, "zero_allow_untested_optimizer": True}
# (config, whether it is built under zero.Init) -> a word of what it raises, or None.
BUILT: dict[str, tuple[dict[str, Any], bool, str | None]] = {
    "XF301 stage 2 under zero.Init": ({**SIZED, "optimizer": SGD, **zero(2)}, True, "must be a matrix"),
    "XF301 stage 3 under zero.Init": ({**SIZED, "optimizer": SGD, **zero(3)}, True, None),
    "XF502 no optimizer, no ZeRO": ({**SIZED}, False, "must provide optimizer"),
    "XF502 no optimizer, stage 2": ({**SIZED, **zero(2)}, False, "zero stage 2 requires an optimizer"),
    "XF502 no optimizer, stage 3": ({**SIZED, **zero(3)}, False, "DeepSpeedZeRoOffload"),
}


def test_engines_as_code_makes_them(tmp_path: Path) -> None:
    options = Options(device="cpu")
    extensions = prepare(["deepspeed_shm_comm"], probe(options, False, False, tmp_path), options, tmp_path, print)
    answers = one_rank("engine_code.py", [(config, init) for config, init, _ in BUILT.values()], extensions, 300)
    for (name, (_, _, word)), got in zip(BUILT.items(), answers, strict=True):
        assert (got is None) if word is None else (word in str(got)), (name, got)


def test_only_the_parts_of_data_efficiency_have_switches_that_are_read() -> None:
    """DS801: the engine asks for the switches of the parts; those of the levels above have no caller."""
    from importlib.util import find_spec

    spec = find_spec("deepspeed")
    assert spec is not None
    assert spec.origin is not None
    files = Path(spec.origin).parent.glob("runtime/**/*.py")
    source = "\n".join(file.read_text("utf-8") for file in files if "data_pipeline" not in file.parts)
    for method, calls in (("random_ltd_enabled", 3), ("curriculum_learning_enabled", 3)):
        assert source.count(f"self.{method}()") >= calls
    for method in ("data_efficiency_enabled", "data_sampling_enabled", "data_routing_enabled"):
        assert f"{method}()" not in source
