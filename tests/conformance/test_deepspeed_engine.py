"""Where a rule says "the engine raises", it raises; where it says "does nothing", training goes on."""

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
ZERO_1, ZERO_2 = {"zero_optimization": {"stage": 1}}, {"zero_optimization": {"stage": 2}}

# code and name -> what is added to the base, and a word of what DeepSpeed raises; the linter must call each an error.
RAISES: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("DS112", "steps_per_print"): ({"steps_per_print": 0}, "ZeroDivisionError"),
    ("DS112", "odd gradient_allreduce_op"): ({"gradient_allreduce_op": "max"}, "gradient_allreduce_op"),
    ("DS111", "clipping as text"): ({"gradient_clipping": "1.0"}, "TypeError"),
    ("DS111", "lr as text"): ({"optimizer": {"type": "SGD", "params": {"lr": "1e-3"}}}, "TypeError"),
    ("DS110", "foreign scheduler parameter"): (
        {"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_max_lr": 1}}},
        "warmup_max_lr",
    ),
    ("DS112", "warmup of no steps"): (
        {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}},
        "ValueError",
    ),
    ("DS311", "prescale"): ({**ZERO_2, "prescale_gradients": True}, "AssertionError"),
    ("DS311", "predivide"): ({**ZERO_2, "gradient_predivide_factor": 2.0}, "AssertionError"),
    ("DS312", "norm"): ({"zero_optimization": {"stage": 2, "compute_grad_norm": False}}, "ValueError"),
    ("DS405", "clipping"): ({"gradient_clipping": "auto"}, "TypeError"),
    ("DS405", "lr"): ({"optimizer": {"type": "SGD", "params": {"lr": "auto"}}}, "TypeError"),
    ("DS501", "max_grad_norm"): ({"optimizer": {"type": "SGD", "params": {"max_grad_norm": 1}}}, "max_grad_norm"),
    ("DS502", "case"): ({"optimizer": {"type": "sgd", "params": {"lr": 0.1}}}, "not a supported"),
    ("DS502", "OneBitAdam"): ({"optimizer": {"type": "OneBitAdam", "params": {"lr": 0.1}}}, "not a supported"),
    ("DS503", "case"): ({"scheduler": {"type": "WarmupLr", "params": {}}}, "does not recognize"),
    ("DS504", "StepLR"): ({**ZERO_1, "scheduler": {"type": "StepLR", "params": {"step_size": 1}}}, "not an Optimizer"),
    ("DS505", "total"): ({"scheduler": {"type": "WarmupDecayLR", "params": {}}}, "total_num_steps"),
    ("DS506", "SGD"): ({**ZERO_1, "zero_allow_untested_optimizer": False}, "untested ZeRO Optimizer"),
    ("DS508", "none"): ({"scheduler": {"type": "WarmupLR"}}, "TypeError"),
}

# What is ignored, or has another effect than it says: DeepSpeed trains, and the linter warns.
TRAINS: dict[tuple[str, str], dict[str, Any]] = {
    ("DS110", "unknown"): {"gradient_acumulation": 3, "my_own_key": 1},
    ("DS112", "clipping below 0"): {"gradient_clipping": -1},
    ("DS112", "warmup type"): {"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cosine"}}},
    ("DS301", "stage 2"): {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}},
    ("DS304", "no device"): {"zero_optimization": {"stage": 2, "offload_optimizer": {}}},
    ("DS306", "no stage"): {"zero_optimization": {"overlap_comm": True}},
    ("DS307", "ZeRO++"): {"zero_optimization": {"stage": 2, "zero_quantized_weights": True}},
    ("DS309", "SGD offloaded"): {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}},
    ("DS502", "no type"): {"optimizer": {"params": {"lr": 0.1}}},
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str | None]:
    """What the engine says to each config; the op that DeepSpeed builds on a CPU is built once and kept."""
    folder = tmp_path_factory.mktemp("engine")
    options = Options(device="cpu")
    extensions = prepare(["deepspeed_shm_comm"], probe(options, False, False, folder), options, folder, print)
    added = {key: config for key, (config, _) in RAISES.items()} | TRAINS
    got = one_rank("deepspeed_engine.py", [{**BASE, **config} for config in added.values()], extensions, 300)
    return dict(zip(added, got, strict=True))


@pytest.mark.parametrize("key", RAISES, ids=" ".join)
def test_the_engine_raises(key: tuple[str, str], said: dict[tuple[str, str], str | None]) -> None:
    config, word = RAISES[key]
    assert word in str(said[key])
    errors = [finding for finding in lint({**BASE, **config}, TARGET) if finding.severity == "error"]
    assert [finding.code for finding in errors] == [key[0]]


@pytest.mark.parametrize("key", TRAINS, ids=" ".join)
def test_the_engine_trains(key: tuple[str, str], said: dict[tuple[str, str], str | None]) -> None:
    if key != ("DS502", "no type"):  # which leaves DeepSpeed without an optimizer
        assert said[key] is None
    findings = [finding for finding in lint({**BASE, **TRAINS[key]}, TARGET) if finding.severity != "info"]
    assert {finding.code for finding in findings} == {key[0]}
