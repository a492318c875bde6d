"""What the files of this format are written from."""

from dataclasses import dataclass
from typing import Literal

from dsgen.legality.values import Case
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOrder:
    """A plan to write, and everything that a file may depend on."""

    case: Case
    sequence_length: int

    @property
    def plan(self) -> Plan:
        return self.case.plan

    @property
    def shapes(self) -> Shapes:
        return self.case.shapes

    @property
    def source(self) -> Literal["decoder", "transformers", "factory"]:
        """What the model is: the decoder that is written beside it, a class of transformers, or what a function of the
        user makes."""
        if self.shapes.factory is not None:
            return "factory"
        return "transformers" if self.case.target.loaded_by == "transformers" else "decoder"

    @property
    def shard_group(self) -> int | None:
        """Ranks that share one copy, where these are not all: HSDP."""
        group = self.plan.shard_group
        return None if group == self.plan.world_size else group
