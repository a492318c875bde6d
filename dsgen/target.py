"""Who a file is written for, or linted for: format, loader, library versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from dsgen.errors import RefusedError
from dsgen.facts.versions import libraries, version_key
from dsgen.spec.values import Spec

Format = Literal["deepspeed", "fsdp2", "fsdp1", "ddp", "megatron", "accelerate", "hf"]
Loader = Literal["deepspeed", "transformers", "accelerate", "lightning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a file is meant for. World size and GPU stand in Hardware."""

    format: Format = "deepspeed"
    loaded_by: Loader = "deepspeed"
    """Who reads the file: it decides the dialect and which "auto" values are filled."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Library name to version, for example {"deepspeed": "0.19.8", "torch": "2.13.0"}; newest known where absent."""

    def version(self, library: str) -> str:
        """The version of that library: as stated, else the newest known."""
        return self.versions.get(library) or libraries()[library].newest


def target_of(spec: Spec) -> Target:
    """The spec's target, with the newest known version of every library that it leaves open.

    Raises RefusedError for a version older than any that dsgen writes for.
    """
    for name, stated in spec.target.versions.items():
        oldest = libraries()[name].oldest
        if version_key(stated) < version_key(oldest):
            raise RefusedError.at(
                f"dsgen writes for {name} {oldest} and newer, not {stated}",
                spec.place("target", "versions", name),
                f"write what will run it, {oldest} to {libraries()[name].newest}",
            )
    newest = {name: library.newest for name, library in libraries().items()}
    # The schema has checked format and loader against the names that exist.
    return Target(
        format=cast(Format, spec.target.format),
        loaded_by=cast(Loader, spec.target.loaded_by),
        versions={**newest, **spec.target.versions},
    )


def unknown_versions(target: Target) -> tuple[str, ...]:
    """A sentence for each version that is newer than what dsgen knows."""
    return tuple(
        f"{name} {target.version(name)} is newer than {library.newest}, the newest that dsgen knows: what it changed "
        "is not considered."
        for name, library in libraries().items()
        if version_key(target.version(name)) > version_key(library.newest)
    )
