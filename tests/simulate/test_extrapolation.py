"""Two shallow models say what a deep one takes: by arithmetic, and beside whole models."""

from dataclasses import replace

import pytest
from grid import FULL, NONE, Case
from worlds import LLAMA_2_7B, plan, shapes_of

from dsgen.plan import Checkpointing
from dsgen.shapes.values import Moe
from dsgen.simulate.depths import Depths, depths
from dsgen.simulate.extrapolate import Line, moments


def run(layers: int, **sites: int) -> dict[str, object]:
    return {
        "layers": layers,
        "sites": {name.replace("__", "/"): [size, {"activations": size}] for name, size in sites.items()},
    }


def test_every_site_grows_by_itself_and_the_peak_moves() -> None:
    """At 4 layers the forward pass is largest in the first block, at 32 in the last: 10 + 0 against 4 + 2 x 28."""
    first, second = "forward__0__first", "forward__0__last"
    (found,) = moments([run(4, **{first: 10, second: 4}), run(6, **{first: 10, second: 8})], 32)
    assert (found.name, found.site, found.total) == ("forward", "last", 4 + 2 * 28)
    assert found.parts == {"activations": 60}


def test_a_site_of_one_depth_alone_says_nothing() -> None:
    (found,) = moments([run(4, forward__0__last=4), run(6, forward__0__last=8, forward__0__between=900)], 32)
    assert found.total == 60


def test_one_depth_is_taken_as_it_is() -> None:
    assert Line(8, 8, 8)(123, 123) == 123


def test_depths_of_alike_layers() -> None:
    shapes = shapes_of(LLAMA_2_7B)
    assert depths(plan(), shapes, everything=False) == Depths((4, 6), 2)
    assert depths(plan(), shapes, everything=True) == Depths((32,), 2)
    assert depths(plan(), shapes_of(replace(LLAMA_2_7B, layers=6)), everything=False).layers == (6,)


def test_depths_keep_the_place_in_the_period() -> None:
    """Every third of 32 layers is checkpointed: shallow ones differ from 32 by a multiple of 3, and by 6."""
    found = depths(plan(checkpointing=Checkpointing("every", 3)), shapes_of(LLAMA_2_7B), everything=False)
    assert found == Depths((8, 14), 4)
    assert all((32 - layers) % 3 == 0 for layers in found.layers)


def test_dense_layers_at_the_start_are_told_apart() -> None:
    arch = replace(LLAMA_2_7B, moe=Moe(experts=8, top_k=2, intermediate=1408, first_dense_layers=2))
    found = depths(plan(), shapes_of(arch), everything=False)
    assert found.margin == 2 + 2
    assert found.layers[0] >= 2 * found.margin


DEEP = (
    Case("fsdp2", "llama-2-7b", layers=12),
    Case("fsdp2", "llama-2-7b", {"checkpointing": NONE, "accumulation": 2}, layers=12),
    Case("fsdp2", "llama-2-7b", {"checkpointing": Checkpointing("every", 3), "micro_batch": 4}, layers=20),
    Case("fsdp2", "llama-2-7b", {"zero_stage": 2, "checkpointing": FULL, "micro_batch": 2}, layers=12),
    Case("fsdp1", "llama-2-7b", {"checkpointing": NONE, "micro_batch": 2}, layers=12),
    Case("fsdp1", "llama-2-7b", {"shard_group": 4, "zero_stage": 2}, layers=12),
    Case("ddp", "llama-2-7b", {"zero_stage": 0, "checkpointing": FULL}, layers=12),
)


@pytest.mark.full
@pytest.mark.parametrize("case", DEEP, ids=str)
def test_it_equals_the_whole_model(case: Case) -> None:
    """To a block of the allocator for each extrapolated layer: sizes are rounded up to 512 bytes."""
    shallow, whole = case.simulated(), case.simulated(everything=True)
    assert len(shallow.layers) == 2
    assert whole.layers == (case.layers,)
    for extrapolated, real in zip(shallow.moments, whole.moments, strict=True):
        assert extrapolated.total == pytest.approx(real.total, abs=512 * (case.layers or 0)), real.name
    assert shallow.resident == whole.resident
    assert shallow.collectives == whole.collectives
