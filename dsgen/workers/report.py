"""Figures as JSON has them."""

from collections.abc import Mapping
from typing import Any


def number(value: Any) -> float | str:
    """A float; NaN and infinities by name, for JSON has none."""
    as_float = float(value)
    return as_float if as_float - as_float == 0 else str(as_float)


def movement(torch: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """How far the weights went, ||after - before|| / ||before||, and a sum that ranks can compare."""
    moved = sum((after[name].double() - start.double()).square().sum() for name, start in before.items())
    size = sum(start.double().square().sum() for start in before.values())
    return {
        "moved": number(torch.sqrt(moved / size)),
        "weights_sum": number(sum(tensor.double().sum() for tensor in after.values())),
        "master_weights": all(tensor.dtype == torch.float32 for tensor in after.values()),
    }
