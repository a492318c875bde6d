"""What stage 3 gathers."""

from worlds import LLAMA_2_7B, setting, shapes_of

from dsgen.memory.gathered import Gathered, gathers, kept_over_the_turn, persistent
from dsgen.plan import Buckets

HEAD = 32000 * 4096
BLOCK = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
LARGEST = 4096 * 11008


def buckets(**changes: int) -> Buckets:
    base = {
        "reduce": 1,
        "allgather": 2,
        "prefetch": 1000,
        "max_live_parameters": 10**9,
        "max_reuse_distance": 0,
        "persistence_threshold": 0,
        "sub_group_size": 10**12,
    }
    return Buckets(**(base | changes))


def test_norms_are_persistent() -> None:
    found = persistent(setting(LLAMA_2_7B, buckets=buckets(persistence_threshold=40_960)))
    assert found == 65 * 4096


def test_one_rank_gathers_nothing_unless_weights_are_offloaded() -> None:
    assert not gathers(setting(LLAMA_2_7B, world_size=1))
    assert gathers(setting(LLAMA_2_7B, world_size=1, offload_parameters="cpu"))
    assert gathers(setting(LLAMA_2_7B))
    assert not gathers(setting(LLAMA_2_7B, zero_stage=2))


def test_layers_reused_soon_stay_over_the_turn() -> None:
    shapes = shapes_of(LLAMA_2_7B)
    # The last layer's backward use is 2 HEAD away, the one before it 2 (HEAD + BLOCK).
    assert kept_over_the_turn(shapes, 0) == (32, HEAD)
    assert kept_over_the_turn(shapes, 2 * HEAD + 1) == (31, HEAD + BLOCK)
    assert kept_over_the_turn(shapes, 2 * (HEAD + BLOCK)) == (31, HEAD + BLOCK)
    assert kept_over_the_turn(shapes, 10**12) == (0, HEAD + 32 * BLOCK)


def test_a_block_and_what_is_fetched_ahead() -> None:
    gathered = Gathered(setting(LLAMA_2_7B, buckets=buckets()))
    # A prefetch bucket smaller than a tensor still fetches one whole tensor.
    assert gathered.at_block(0) == 2 * (BLOCK + LARGEST)
    assert gathered.at_loss == 2 * (HEAD + LARGEST)


def test_max_live_parameters_stops_the_prefetch() -> None:
    gathered = Gathered(setting(LLAMA_2_7B, buckets=buckets(max_live_parameters=BLOCK)))
    assert gathered.at_block(0) == 2 * BLOCK
