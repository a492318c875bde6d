"""A simulation beside the ledger: text for people, fields for scripts."""

from collections.abc import Iterator
from typing import Any

from dsgen.memory.ledger import DeviceAccount
from dsgen.memory.ledger import Moment as LedgerMoment
from dsgen.report.tables import aligned, share
from dsgen.simulate.values import Moment, Simulation
from dsgen.units import GIB, format_bytes

# The ledger's moments by the phases of a simulation.
_NAMES = {"forward": "end of forward", "backward": "backward", "optimizer step": "optimizer step"}


def simulation_lines(simulation: Simulation, device: DeviceAccount) -> Iterator[str]:
    """Formula and simulation of every moment, and what the latter leaves out."""
    rows = [("moment", "formula GiB", "simulated GiB", "difference", "largest at")]
    for moment, formula in _pairs(simulation, device):
        peak = " (peak)" if moment is simulation.peak_moment else ""
        difference = share(formula / moment.total - 1, signed=True)
        rows.append((moment.name + peak, _gib(formula), _gib(moment.total), difference, moment.site))
    yield from aligned(rows)
    between = f"{format_bytes(simulation.resident)} stay between steps"
    depth = " and ".join(str(layers) for layers in simulation.layers)
    extrapolated = ", the rest extrapolated block by block" if len(simulation.layers) > 1 else ""
    yield f"{between}; {depth} layers ran under torch {simulation.torch}{extrapolated}: {simulation.seconds:.1f} s"
    yield f"not simulated: {'; '.join(simulation.not_simulated)}"


def simulation_fields(simulation: Simulation, device: DeviceAccount) -> dict[str, Any]:
    """``moments`` with the formula's tensors beside them; ``parts`` are those alive at the peak."""
    peak = simulation.peak_moment
    return {
        "peak": peak.total,
        "moment": _NAMES[peak.name],
        "site": peak.site,
        "parts": dict(peak.parts),
        "moments": [
            {
                "name": _NAMES[moment.name],
                "total": moment.total,
                "formula": formula,
                "site": moment.site,
                "parts": dict(moment.parts),
            }
            for moment, formula in _pairs(simulation, device)
        ],
        "resident": simulation.resident,
        "resident_parts": dict(simulation.resident_parts),
        "collectives": dict(simulation.collectives),
        "layers_simulated": list(simulation.layers),
        "seconds": simulation.seconds,
        "torch": simulation.torch,
        "not_simulated": list(simulation.not_simulated),
    }


def _pairs(simulation: Simulation, device: DeviceAccount) -> Iterator[tuple[Moment, int]]:
    formulas = {moment.name: tensors(moment) for moment in device.moments}
    for moment in simulation.moments:
        yield moment, formulas[_NAMES[moment.name]]


def tensors(moment: LedgerMoment) -> int:
    """Bytes of a moment that are tensors': all but what no tensor owns."""
    return moment.total - moment.parts.get("framework", 0)


def _gib(size: int) -> str:
    return f"{size / GIB:.2f}"
