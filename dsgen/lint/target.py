"""What a linted file is meant for. Unlike a written file's target it may be unknown, and unknown is not guessed."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsgen.lint import versions

if TYPE_CHECKING:  # they bring the whole spec along, which a lint does not need
    from dsgen.facts.gpus import Gpu
    from dsgen.lint.finding import Elsewhere
    from dsgen.lint.neighbours import Neighbours
    from dsgen.lint.stated import StatedModel
    from dsgen.plan import Checkpointing
    from dsgen.spec.values import Method
    from dsgen.target import Loader


INSTALLED = "installed"
"""The origin of a version that is only found beside dsgen: likely the project's, but nobody said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintTarget:
    """Library versions, who loads the file, model and machines; None where nobody said."""

    deepspeed: versions.Version
    """The version whose rules apply: the stated one, else what is installed, else the newest that dsgen knows."""
    stated: bool
    """Whether the DeepSpeed version was stated, or found in the project's files. What is merely installed may be newer
    than what the file was written for, so what only some versions refuse is no error then."""
    origin: str | None = None
    """Where the version was found, if nobody stated it outright."""
    loaded_by: "Loader | None" = None
    world_size: int | None = None
    gpus_per_node: int | None = None
    launch: "Elsewhere | None" = None
    """The line that starts so many processes, where no flag and no setting says how many."""
    gpu: "Gpu | None" = None
    host_memory: int | None = None
    """Bytes of RAM of one node."""
    model: "StatedModel | None" = None
    sequence_length: int | None = None
    micro_batch: int | None = None
    """Sequences per rank, for configs that leave it to somebody else."""
    checkpointing: "Checkpointing | None" = None
    method: "Method | None" = None
    beside: "Neighbours | None" = field(default=None, compare=False)
    """Code and launch lines beside the file; None where nobody may look at them."""

    def since(self, version: str) -> bool:
        """Whether the DeepSpeed at hand is this version or later."""
        return versions.at_least(self.deepspeed, version)

    @property
    def library(self) -> str:
        """DeepSpeed with its version, for messages; says where nobody stated it, and where nobody could try it."""
        from dsgen.lint.schema import deepspeed_schema  # late: reads the schema, which a file without findings may not

        name, known = f"DeepSpeed {versions.show(self.deepspeed)}", deepspeed_schema()["x-dsgen"]
        notes = [self.origin or ("" if self.stated else "the newest known")]
        if versions.before(self.deepspeed, known["oldest"]):
            notes.append("by its source, not executed")
        elif self.deepspeed > versions.parse(known["newest"]):
            notes.append(f"newer than what is known here, taken for {known['newest']}")
        said = "; ".join(filter(None, notes))
        return f"{name} ({said})" if said else name


def make_target(
    deepspeed: str | None = None,
    loaded_by: "Loader | None" = None,
    world_size: int | None = None,
    gpus_per_node: int | None = None,
    origin: str | None = None,
    **more: Any,
) -> LintTarget:
    """The target that flags describe, or what was found instead of them; ``more`` are further fields, as they are."""
    from dsgen.lint.schema import newest  # late: reads the schema, which a bad flag does not need

    return LintTarget(
        deepspeed=versions.parse(deepspeed or newest()),
        stated=deepspeed is not None and origin != INSTALLED,
        origin=origin,
        loaded_by=loaded_by,
        world_size=world_size,
        gpus_per_node=gpus_per_node,
        **more,
    )
