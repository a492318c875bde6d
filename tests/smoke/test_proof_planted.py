"""Mistakes that people make in training loops: each is caught, and by the check that should see it.

BY_HAND and IN_A_FOLDER say which. A right loop of the same kind passes every check. The everyday tier tries one seed,
the full one five.
"""

from pathlib import Path
from typing import Any

import pytest
from rotation import turn
from smoke_helpers import config
from trial_runs import Came, Entry, deepspeed_entry, fsdp2_entry, run_trials, with_subject

PLANTED = Path(__file__).resolve().parent / "planted"
CONFIGURED, SGD = "configured optimizer, fp32", "clipped SGD, fp32"
NORM, LOSSES, WEIGHTS, TALKS = "first gradient norm", "losses", "weights", "collectives"

# Code and mistake: the check that should see it in the trial with SGD, and what is said of it.
BY_HAND: dict[tuple[str, str], tuple[str | None, str]] = {
    ("ddp", "none"): (None, ""),
    ("ddp", "init differs"): (None, ""),  # DDP sends rank 0's weights to all: no mistake
    ("ddp", "not divided"): (NORM, "4 times"),
    ("ddp", "gate off by one"): (NORM, ""),
    ("ddp", "sync on the first"): (NORM, "sync in the wrong micro-batch"),
    ("ddp", "no no_sync"): (TALKS, "no_sync"),
    ("ddp", "same data"): (LOSSES, "other data than they should"),
    ("ddp", "not clipped"): (WEIGHTS, "it is not clipped"),
    ("fsdp2", "none"): (None, ""),
    ("fsdp2", "clip on a shard"): (NORM, "one rank's shard"),
    ("fsdp2", "optimizer before sharding"): (WEIGHTS, "the optimizer was made before sharding"),
    ("fsdp2", "init differs"): (LOSSES, "start from other weights"),
    ("deepspeed", "none"): (None, ""),
    ("deepspeed", "divided twice"): (NORM, "divided by the accumulation steps twice"),
    ("deepspeed", "not divided"): (NORM, "not divided by the accumulation steps"),
    ("deepspeed", "step gated by hand"): (WEIGHTS, ""),
    ("deepspeed", "same data"): (LOSSES, "other data than they should"),
}

ACCUMULATE = "model.set_requires_gradient_sync(last or REDUCE_EACH_MICRO_BATCH)"
CLIP = "norm = nn.utils.clip_grad_norm_(model.parameters(), CLIPPING)"
SHARD = "    shard(model, mesh, model.layers)\n"
ADAM = "ddp, not divided, with Adam"
LAST = "last = index == len(window) - 1"

# Edits of a folder that build has written: file, text before, text after.
IN_A_FOLDER: dict[str, tuple[dict[str, dict[str, str]], str, str]] = {
    "loss summed over micro-batches": (
        {"train.py": {"(loss * world / count)": "(loss * world * len(window) / count)"}},
        NORM,
        "4 times",
    ),
    "loss averaged over ranks twice": (
        {"train.py": {"(loss * world / count)": "(loss / count)"}},
        NORM,
        "averaged over the ranks twice",
    ),
    "gate off by one": ({"train.py": {LAST: "last = index == len(window)"}}, NORM, "the gate for it never opens"),
    "sync on the first": ({"train.py": {LAST: "last = index == 0"}}, NORM, "misses micro-batches"),
    "no gate": ({"train.py": {ACCUMULATE: "model.set_requires_gradient_sync(True)"}}, TALKS, "gradient_sync"),
    "not clipped": ({"train.py": {CLIP: "norm = torch.zeros(())"}}, WEIGHTS, "it is not clipped"),
    "optimizer before sharding": (
        {
            "train.py": {
                SHARD: "    early = list(model.parameters())\n" + SHARD,
                "[p for p in model.parameters() if p.requires_grad]": "early",
            }
        },
        WEIGHTS,
        "the optimizer was made before sharding",
    ),
    "blocks left whole": (
        {"sharding.py": {"for block in blocks:\n        fully_shard(": "for block in ():\n        fully_shard("}},
        TALKS,
        "",
    ),
}


def by_hand(folder: Path, seed: int) -> dict[str, Entry]:
    """The trials of BY_HAND: what they clip at and train on is that of a stage 1 config."""
    stage_1 = {**config(1), "gradient_accumulation_steps": 4, "train_micro_batch_size_per_gpu": 2}
    entry = deepspeed_entry(folder / "by_hand", stage_1, SGD, seed=seed)
    return {f"{code}, {mistake}": with_subject(entry, PLANTED / f"{code}.py", mistake) for code, mistake in BY_HAND}


def in_a_folder(folder: Path, seed: int) -> dict[str, Entry]:
    entries: dict[str, Entry] = {"folder, none": fsdp2_entry(folder / "right", SGD, accumulation=4, seed=seed)}
    for number, (mistake, (edit, _, _)) in enumerate(IN_A_FOLDER.items()):
        entries[f"folder, {mistake}"] = fsdp2_entry(
            folder / f"wrong{number}", SGD, accumulation=4, seed=seed, edit=edit
        )
    return entries


def verify(came: dict[str, Came]) -> None:
    expected: dict[str, tuple[Any, str]] = {
        **{f"{code}, {mistake}": seen for (code, mistake), seen in BY_HAND.items()},
        "folder, none": (None, ""),
        **{f"folder, {mistake}": (check, words) for mistake, (_, check, words) in IN_A_FOLDER.items()},
    }
    wrong = {}
    for name, (check, words) in expected.items():
        one = came[name]
        right = one.failed == [] if check is None else check in one.failed and words in one.reason
        if not right:
            wrong[name] = (one.failed, one.reason)
    assert not wrong, "\n".join(f"{name}: {seen}" for name, seen in wrong.items())


def all_entries(folder: Path, seed: int) -> dict[str, Entry]:
    """Every planted mistake, and one with Adam for what it hides."""
    stage_1 = {**config(1), "gradient_accumulation_steps": 4, "gradient_clipping": 0.1}
    adam = deepspeed_entry(folder / "adam", stage_1, CONFIGURED, seed=seed)
    return {
        **by_hand(folder, seed),
        **in_a_folder(folder, seed),
        ADAM: with_subject(adam, PLANTED / "ddp.py", "not divided"),
    }


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Came]:
    folder = tmp_path_factory.mktemp("planted")
    return run_trials(all_entries(folder, turn() % 1000), folder, 2)


def test_every_mistake_is_caught(came: dict[str, Came]) -> None:
    verify(came)


def test_adam_hides_a_loss_that_is_not_divided(came: dict[str, Came]) -> None:
    """Why the norm is compared: with Adam and clipping, a gradient that is K times too large trains the same."""
    one = came[ADAM]
    assert one.failed == [NORM]
    assert one.figures["norms"][0] == pytest.approx(4 * one.figures["plain_norms"][0], rel=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
def test_every_mistake_is_caught_with_any_seed(tmp_path: Path, seed: int) -> None:
    verify(run_trials(all_entries(tmp_path, seed), tmp_path, 2))
