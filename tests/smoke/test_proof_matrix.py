"""Right layouts are equal to a plain loop: every ZeRO stage, offload, FSDP2 with and without resharding, HSDP.

The everyday tier has each of them in both precisions, with accumulation and checkpointing that rotate with the commit;
the full tier has every combination, and five seeds. All trials of a number of processes share one process group.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rotation import rotated, turn
from trial_runs import Came, Entry, deepspeed_entry, fsdp2_entry, run_trials

from dsgen.plan import Checkpointing

CPU = {"device": "cpu"}
ON_CPU = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}
DEEPSPEED: dict[str, dict[str, Any]] = {
    "zero0": {"stage": 0},
    "zero1": {"stage": 1},
    "zero2": {"stage": 2},
    "zero3": {"stage": 3, "stage3_param_persistence_threshold": 100},
    "zero1 offload": {"stage": 1, "offload_optimizer": CPU},
    "zero2 offload": {"stage": 2, "offload_optimizer": CPU},
    "zero3 offload": {"stage": 3, "offload_optimizer": CPU, "offload_param": CPU},
}
FSDP2: dict[str, dict[str, Any]] = {
    "fsdp2 reshard": {"zero_stage": 3},
    "fsdp2 keep": {"zero_stage": 2},
    "fsdp2 offload": {"zero_stage": 3, **ON_CPU},
}
HSDP: dict[str, dict[str, Any]] = {
    "hsdp reshard": {"zero_stage": 3, "shard_group": 2},
    "hsdp keep": {"zero_stage": 2, "shard_group": 2},
}


@dataclass(frozen=True)
class How:
    """One corner of the matrix."""

    precision: str
    accumulation: int
    checkpointing: str

    @property
    def trial(self) -> str:
        """Clipped SGD where there is accumulation, which it needs; the configured optimizer elsewhere."""
        if self.precision == "fp32" and self.accumulation > 1:
            return "clipped SGD, fp32"
        return f"configured optimizer, {self.precision}"


CORNERS = [How(*corner) for corner in product(("fp32", "bf16"), (1, 4), ("none", "full"))]


def sample(salt: int) -> list[How]:
    """One corner in each precision."""
    return [
        rotated([how for how in CORNERS if how.precision == precision], 1, salt + offset)[0]
        for offset, precision in enumerate(("fp32", "bf16"))
    ]


def entries(
    folder: Path, kinds: dict[str, dict[str, Any]], corners: Any, seed: int, processes: int
) -> dict[str, Entry]:
    """``corners(salt)`` gives those of a kind."""
    found = {}
    for salt, (kind, asked) in enumerate(kinds.items()):
        for how in corners(salt):
            name = f"{kind}, {how.precision}, accumulation {how.accumulation}, checkpointing {how.checkpointing}"
            place = folder / f"{processes}-{salt}-{CORNERS.index(how)}"
            if "stage" in asked:
                config = {
                    "train_micro_batch_size_per_gpu": 2,
                    "gradient_accumulation_steps": how.accumulation,
                    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1, "torch_adam": True}},
                    "gradient_clipping": 1.0,
                    "zero_optimization": asked,
                    "zero_force_ds_cpu_optimizer": False,
                    "bf16": {"enabled": how.precision == "bf16"},
                }
                found[name] = deepspeed_entry(place, config, how.trial, checkpointing=how.checkpointing, seed=seed)
            else:
                found[name] = fsdp2_entry(
                    place,
                    how.trial,
                    precision=how.precision,
                    accumulation=how.accumulation,
                    processes=processes,
                    seed=seed,
                    checkpointing=Checkpointing("full" if how.checkpointing == "full" else "none"),
                    **asked,
                )
    return found


def all_equal(came: dict[str, Came]) -> None:
    wrong = {name: one.reason for name, one in came.items() if one.equal is None or one.equal.verdict is not True}
    assert not wrong, "\n".join(f"{name}: {reason}" for name, reason in wrong.items())


def test_two_processes(tmp_path: Path) -> None:
    came = run_trials(entries(tmp_path, DEEPSPEED | FSDP2, sample, turn() % 1000, 2), tmp_path, 2)
    assert len(came) == 20
    all_equal(came)


def test_four_processes(tmp_path: Path) -> None:
    came = run_trials(entries(tmp_path, HSDP, sample, turn() % 1000, 4), tmp_path, 4)
    assert len(came) == 4
    all_equal(came)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("kinds", "processes"), [(DEEPSPEED | FSDP2, 2), (HSDP, 4)], ids=["two", "four"])
def test_everything(tmp_path: Path, kinds: dict[str, dict[str, Any]], processes: int, seed: int) -> None:
    came = run_trials(entries(tmp_path, kinds, lambda _: CORNERS, seed, processes), tmp_path, processes)
    assert len(came) == 8 * len(kinds)
    all_equal(came)


@pytest.mark.parametrize("kind", ["zero0", "zero2"])
def test_traits_are_named(tmp_path: Path, kind: str) -> None:
    """Nothing is run: what is known of a layout stands in its trial."""
    found = entries(tmp_path, {kind: DEEPSPEED[kind]}, lambda _: CORNERS, 0, 2)
    by_precision = {
        precision: {trait.name for name, one in found.items() if precision in name for trait in one.trial.traits}
        for precision in ("fp32", "bf16")
    }
    assert (
        by_precision
        == {
            "zero0": {"fp32": {"no gradient norm"}, "bf16": {"dummy step", "sums: bf16 on ranks"}},
            "zero2": {"fp32": set(), "bf16": {"sums: bf16 each step"}},
        }[kind]
    )
