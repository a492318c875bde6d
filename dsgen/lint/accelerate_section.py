"""``deepspeed_config`` of an Accelerate file: keys of its own, which Accelerate turns into a DeepSpeed config.

Source: accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__ (plugin_to_config_mapping, and the config that it
writes where no file is named). Only what stands in the file is looked at; what Accelerate adds are defaults and "auto".
"""

from collections.abc import Mapping

from dsgen.documents.document import Document, Member, Node, Path, mapping
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.mark import Change

SECTION = "deepspeed_config"
_ZERO = "zero_optimization"
PATHS: Mapping[str, tuple[str, ...]] = {
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "gradient_clipping": ("gradient_clipping",),
    "zero_stage": (_ZERO, "stage"),
    "offload_optimizer_device": (_ZERO, "offload_optimizer", "device"),
    "offload_optimizer_nvme_path": (_ZERO, "offload_optimizer", "nvme_path"),
    "offload_param_device": (_ZERO, "offload_param", "device"),
    "offload_param_nvme_path": (_ZERO, "offload_param", "nvme_path"),
    "zero3_save_16bit_model": (_ZERO, "stage3_gather_16bit_weights_on_model_save"),
}
_DEFAULT_STAGE = 2
# Accelerate drops the path of what does not go there, and "none" is how it writes that there is no offload.
_NVME_PATHS = ("offload_optimizer_nvme_path", "offload_param_nvme_path")


class AccelerateSection(ConfigFile):
    """The DeepSpeed config that Accelerate makes of its section, at the places of the section's keys."""

    def __init__(self, text: str, section: Node, path: Path) -> None:
        super().__init__(Document(text, _as_deepspeed(section)), dialect="yaml", prefix=path)
        self._written = {member.key for member in section.members or ()}

    def fix(self, change: Change) -> None:
        """Edits are in terms of keys that the file does not have."""

    def path_of(self, where: object) -> Path | None:
        """The key that somebody wrote."""
        if not isinstance(where, tuple):
            return None
        written = [key for key, path in PATHS.items() if path[: len(where)] == where and key in self._written]
        return (*(self.prefix or ()), *written[:1])


def is_accelerate(section: Node) -> bool:
    """Whether a section is one of Accelerate's that names no file."""
    keys = {member.key for member in section.members or ()}
    return bool(keys & (PATHS.keys() - {"gradient_clipping", "gradient_accumulation_steps"})) and not keys & {
        "deepspeed_config_file",
        _ZERO,
    }


def _as_deepspeed(section: Node) -> Node:
    written = {member.key: member for member in section.members or () if member.key in PATHS}
    for key in _NVME_PATHS:
        device = written.get(key.replace("nvme_path", "device"))
        if device is None or device.node.value != "nvme":
            written.pop(key, None)
    top = [_as(member, key) for key, member in written.items() if len(PATHS[key]) == 1]
    zero = [_as(member, PATHS[key][1]) for key, member in written.items() if len(PATHS[key]) == 2]
    if "zero_stage" not in written:
        zero.append(
            Member("stage", section.start, section.start, Node(_DEFAULT_STAGE, section.start, section.start), None)
        )
    for part in ("offload_optimizer", "offload_param"):
        inner = [_as(member, PATHS[key][2]) for key, member in written.items() if PATHS[key][1:2] == (part,)]
        if inner:
            zero.append(_holding(part, inner))
    return mapping([*top, _holding(_ZERO, zero)], section.start, section.end)


def _as(member: Member, key: str) -> Member:
    return Member(key, member.key_start, member.key_end, member.node, None)


def _holding(key: str, members: list[Member]) -> Member:
    """A mapping that the file does not have: it stands where its first member stands."""
    first = members[0]
    return Member(key, first.key_start, first.key_end, mapping(members, first.key_start, first.node.end), None)
