"""``sequence_length: max``: the longest that fits, and not one step more."""

import pytest
from planner_specs import spec

from dsgen.planner.job import decide_spec
from dsgen.planner.longest import STEP
from dsgen.planner.refusal import NothingFitsError
from dsgen.spec.read import spec_from_text
from dsgen.units import GIB


def longest(**given: object) -> int:
    base = {"sequence_length": None, "longest": True, "global_batch": 8}
    return decide_spec(spec(**base | given)).sequence_length  # type: ignore[arg-type]


WANT = {"zero_stage": 3, "checkpointing": "full", "offload_optimizer": "none", "offload_parameters": "none"}


def test_one_step_more_does_not_fit() -> None:
    given: dict[str, object] = {"model": "llama-3.1-8b", "want": WANT, "budget": 40 * GIB}
    length = longest(**given)
    assert length % STEP == 0
    fits = decide_spec(spec(**given | {"sequence_length": length, "global_batch": 8}))  # type: ignore[arg-type]
    assert fits.decision.chosen.fit.fits
    with pytest.raises(NothingFitsError):
        decide_spec(spec(**given | {"sequence_length": length + STEP, "global_batch": 8}))  # type: ignore[arg-type]


def test_the_models_positions_are_an_end() -> None:
    assert longest(model="gpt2") == 1024
    assert longest(model="gpt2", budget=4 * GIB) <= 1024


def test_more_memory_never_gives_a_shorter_sequence() -> None:
    found = [longest(model="llama-3.1-8b", want=WANT, budget=size * GIB) for size in (30, 40, 60, 78)]
    assert found == sorted(found)
    assert len(set(found)) > 1


def test_the_tokens_of_a_step_are_a_whole_number_of_sequences() -> None:
    tokens = 8 * 6144
    length = longest(model="llama-3.1-8b", global_batch=None, global_tokens=tokens)
    assert tokens % length == 0


def test_a_spec_may_ask_for_it() -> None:
    text = "{model: gpt2, hardware: {gpu: a100}, training: {sequence_length: max, global_tokens: 524288}}"
    read = spec_from_text(text)
    assert read.training.longest
    assert read.training.sequence_length is None
    assert any(note.startswith("sequence_length max: 1024 tokens, all") for note in decide_spec(read).decision.notes)


def test_nothing_fits_even_at_the_shortest() -> None:
    with pytest.raises(NothingFitsError):
        longest(model="llama-2-70b", gpus=1, gpu="rtx-4090", host_memory=16 * GIB)
