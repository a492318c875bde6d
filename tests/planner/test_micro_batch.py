"""The global batch comes out exactly, or is refused with the nearest that can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsgen.errors import RefusedError
from dsgen.plan import Wishes
from dsgen.planner.micro_batch import SATURATING_TOKENS, Split, global_batch_of, largest, splits
from dsgen.spec.values import Training


@given(share=st.integers(1, 5000), ranks=st.integers(1, 512))
def test_every_split_gives_the_global_batch(share: int, ranks: int) -> None:
    choices, notes = splits(Wishes(), share * ranks, ranks, 4096)
    assert all(split.micro_batch * split.accumulation * ranks == share * ranks for split in choices)
    sizes = [split.micro_batch for split in choices]
    assert sizes == [size for size in range(1, share + 1) if share % size == 0]
    assert notes == ()


@given(batch=st.integers(1, 10_000), ranks=st.integers(2, 64))
def test_a_batch_that_ranks_cannot_share_is_refused_with_those_that_can(batch: int, ranks: int) -> None:
    if batch % ranks == 0:
        splits(Wishes(), batch, ranks, 4096)
        return
    with pytest.raises(RefusedError) as refused:
        splits(Wishes(), batch, ranks, 4096)
    help = refused.value.problems[0].help or ""
    offered = [int(word) for word in help.replace("nearest that can are", "").split() if word.isdigit()]
    assert offered
    for number in offered:
        assert number > 0
        assert number % ranks == 0
        assert abs(number - batch) < ranks


def test_wishes_pick_one() -> None:
    assert splits(Wishes(micro_batch=4), 128, 8, 4096)[0] == (Split(4, 4),)
    assert splits(Wishes(accumulation=2), 128, 8, 4096)[0] == (Split(8, 2),)
    assert splits(Wishes(micro_batch=2, accumulation=8), 128, 8, 4096)[0] == (Split(2, 8),)
    assert len(splits(Wishes(micro_batch="max"), 128, 8, 4096)[0]) == 5


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (Wishes(micro_batch=3), "micro_batch 3 does not divide the 16 sequences"),
        (Wishes(accumulation=5), "accumulation 5 does not divide the 16 sequences"),
        (Wishes(micro_batch=4, accumulation=8), "micro_batch 4 x accumulation 8 x 8 data-parallel ranks is 256"),
    ],
)
def test_wishes_that_miss_the_batch_are_refused(wishes: Wishes, words: str) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        splits(wishes, 128, 8, 4096)
    assert refused.value.problems[0].help == "what divides it: 1, 2, 4, 8, 16"


def test_without_a_batch_powers_of_two_up_to_what_fills_a_gpu() -> None:
    choices, notes = splits(Wishes(), None, 8, 2048)
    assert choices == (Split(1, 1), Split(2, 1), Split(4, 1))
    assert choices[-1].micro_batch * 2048 == SATURATING_TOKENS
    assert "global_batch" in notes[0]
    assert splits(Wishes(), None, 8, 100_000)[0] == (Split(1, 1),)
    assert splits(Wishes(micro_batch=3, accumulation=5), None, 8, 2048) == ((Split(3, 5),), ())


def test_every_size_is_tried_for_max_and_listed_once() -> None:
    """Where nothing fits, some hundred changes are tried, each with every way to split ranks."""
    wishes = Wishes(micro_batch="max", accumulation=2)
    (sizes, _), (again, _) = (splits(wishes, None, ranks, 4096) for ranks in (8, 16))
    assert [split.micro_batch for split in sizes] == list(range(1, 4097))
    assert {split.accumulation for split in sizes} == {2}
    assert sizes is again


def test_global_tokens() -> None:
    assert global_batch_of(Training(global_tokens=524_288), 4096, 8) == 128
    assert global_batch_of(Training(global_batch=6), 4096, 8) == 6
    assert global_batch_of(Training(), 4096, 8) is None
    with pytest.raises(RefusedError, match="no whole number of sequences of 4096 tokens") as refused:
        global_batch_of(Training(global_tokens=4_000_000), 4096, 8)
    # 122 and 123 times 8 ranks x 4096 tokens
    assert "3997696 and 4030464" in (refused.value.problems[0].help or "")


@given(size=st.integers(1, 300), limit=st.integers(0, 300))
def test_largest_finds_the_last_that_fits_in_few_trials(size: int, limit: int) -> None:
    tried = []

    def fits(choice: int) -> bool:
        tried.append(choice)
        return choice <= limit

    found = largest(range(1, size + 1), fits)
    assert found == (min(size, limit) or None)
    assert len(tried) <= 2 + size.bit_length()
