"""What the sections of a config are written from, and the form in which they hand back their keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from dsgen.formats.values import Reason
from dsgen.legality.values import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A plan to write, and everything that a section may look at."""

    case: Case
    sequence_length: int
    bucket_reasons: Mapping[str, str]
    """Why each size of ``plan.buckets`` is what it is; the planner knows."""

    @property
    def by_trainer(self) -> bool:
        """Whether transformers loads the file and fills its "auto" values."""
        return self.case.target.loaded_by == "transformers"


def filled(order: Order, key: str, value: object, argument: str, why: str) -> Reason:
    """A key that the Trainer fills from one of its arguments (transformers/integrations/deepspeed.py:
    HfTrainerDeepSpeedConfig): "auto" for it, so that the number stands in one place; else the number."""
    if order.by_trainer:
        return Reason(key, "auto", f"{why}; the Trainer fills it from {argument}")
    return Reason(key, value, why)


def nested(reasons: list[Reason]) -> dict[str, object]:
    """The config: dotted keys become sections, in the order given."""
    config: dict[str, object] = {}
    for reason in reasons:
        *sections, key = reason.key.split(".")
        node = config
        for name in sections:
            inner = node.setdefault(name, {})
            assert isinstance(inner, dict), f"{reason.key} lies inside a value"
            node = inner
        assert key not in node, f"{reason.key} is written twice"
        node[key] = reason.value
    return config
