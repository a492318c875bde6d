"""How many layers have to run for the rest to follow."""

from dataclasses import dataclass
from math import lcm

from dsgen.formats.families import traits_of
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes

# FSDP touches a block's two neighbours: it frees one and gathers the other.
_NEIGHBOURS = 2


@dataclass(frozen=True, slots=True)
class Depths:
    """Layers of each run, and how many blocks at each end are told apart."""

    layers: tuple[int, ...]
    margin: int


def depths(plan: Plan, shapes: Shapes, *, everything: bool) -> Depths:
    """Two shallow models, or the whole one where that is not much more, or where ``everything`` is asked for.

    Layers repeat with a period p: every n-th is checkpointed, is a mixture of experts, or attends in a window. Bytes at
    a site, a block counted from the nearer end, then grow by the same amount with each p layers. So two models, a whole
    number of periods shallower than the real one, say all. Source: derived; tests/simulate compares with whole models.
    """
    arch = shapes.architecture
    period = plan.checkpointing.every if plan.checkpointing.kind == "every" else 1
    if arch.moe is not None:
        period = lcm(period, arch.moe.layer_step)
    if arch.sliding_window:
        period = lcm(period, traits_of(arch).window_every)
    dense_first = arch.moe.first_dense_layers if arch.moe is not None else 0
    margin = max(_NEIGHBOURS, period + 1) + dense_first
    shallow = 2 * margin
    shallow += (arch.layers - shallow) % period
    deeper = shallow + _NEIGHBOURS * period
    if everything or arch.layers <= deeper:
        return Depths((arch.layers,), margin)
    return Depths((shallow, deeper), margin)
