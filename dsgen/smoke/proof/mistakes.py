"""From the pattern of differences to the mistake that probably makes it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dsgen.smoke.proof.values import Check, Trial

_NEAR = 0.01
_STILL = 0.02  # of the movement: what does not move ends one whole movement away
_LONG = 1.5


def probable_mistake(trial: Trial, figures: Mapping[str, Any], checks: Sequence[Check], processes: int) -> str | None:
    """One sentence; None where the pattern says nothing."""
    failed = {check.name for check in checks if not check.ok}
    if "data" in failed:
        return "there is no DistributedSampler, or every rank makes the same one"
    by_factor = _factor(trial, figures, processes) if "first gradient norm" in failed else None
    if by_factor:
        return by_factor
    if figures["norms"][0] == 0:
        return "no gradient reaches the optimizer: it is never reduced, because the gate for it never opens"
    if _standing_still(figures):
        return "no weight moves: the optimizer was made before sharding, and holds parameters that nobody uses"
    if _first_loss_differs(checks, figures):
        return (
            "the first losses differ: the ranks start from other weights, see other data than they should, or change "
            "the weights within a step"
        )
    if "first gradient norm" in failed:
        return (
            "the first losses agree and the gradient does not: it misses micro-batches or ranks (a step or a sync in "
            "the wrong micro-batch, gradients zeroed between them), or its norm is taken of one rank's shard"
        )
    if "weights" in failed and _too_far(figures) and isinstance(trial.clip, Mapping):
        return "the gradient is right and the steps are too long: it is not clipped"
    if "collectives" in failed:
        return _talks(trial, checks)
    return None


def _factor(trial: Trial, figures: Mapping[str, Any], processes: int) -> str | None:
    """Gradients that are too large or too small by a number that means something."""
    norm, plain = figures["norms"][0], figures["plain_norms"][0]
    ratio = norm / plain if plain else 0.0
    steps = trial.accumulation
    meanings = (
        (steps, "the loss is not divided by the accumulation steps"),
        (1 / steps, "the loss is divided by the accumulation steps twice"),
        (processes, "gradients are summed over the ranks, not averaged"),
        (1 / processes, "gradients are averaged over the ranks twice"),
        (steps * processes, "the loss is divided neither by the accumulation steps nor by the ranks"),
    )
    meant = [text for factor, text in meanings if factor != 1 and math.isclose(ratio, factor, rel_tol=_NEAR)]
    if not meant:
        return None
    times = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / ratio:.3g} of"
    return f"the gradient norm is {times} what it should be: {', or '.join(dict.fromkeys(meant))}"


def _standing_still(figures: Mapping[str, Any]) -> bool:
    moved = figures["moved"]
    return bool(moved) and figures["distance"] / moved < _STILL


def _too_far(figures: Mapping[str, Any]) -> bool:
    moved = figures["moved"]
    return bool(moved) and figures["distance"] / moved > _LONG


def _first_loss_differs(checks: Sequence[Check], figures: Mapping[str, Any]) -> bool:
    tolerance = next(check.tolerance for check in checks if check.name == "losses")
    loss, plain = figures["losses"][0], figures["plain_losses"][0]
    return not math.isclose(loss, plain, rel_tol=tolerance or 0)


def _talks(trial: Trial, checks: Sequence[Check]) -> str | None:
    for check in checks:
        if check.name == "collectives" and not check.ok and "gradients" in check.text and trial.accumulation > 1:
            return (
                "gradients are not reduced as often as this layout does it: no_sync (DDP, FSDP1) or "
                "set_requires_gradient_sync (FSDP2) is missing, or skips the wrong micro-batch"
            )
    return "the weights are not laid out as the plan says"
