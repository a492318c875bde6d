"""The DeepSpeed config that Accelerate hands on for its section, with what it writes besides what stands there.

Source: accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__ (the config that it writes where no file is named)
and set_mixed_precision. A ``gradient_clipping`` of 0 is not written, one that is left out is filled in.
"""

from typing import Any

from dsgen.documents.document import Document, DocumentError, Member, Node, mapping
from dsgen.documents.yaml_text import read_yaml
from dsgen.lint.accelerate_section import AccelerateSection

_FILLED_IN = (
    *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
    "gradient_clipping",
)
_HALF: dict[str, dict[str, Any]] = {
    "bf16": {"bf16": {"enabled": True}},
    "fp8": {"bf16": {"enabled": True}},
    "fp16": {"fp16": {"enabled": True, "auto_cast": True}},
}


def as_written(section: AccelerateSection) -> AccelerateSection:
    """The section as DeepSpeed will meet it; what nobody wrote stands at the section's start."""
    root = section.document.root
    assert root is not None, "it was read"
    members = [
        member
        for member in root.members or ()
        if member.key != "gradient_clipping" or member.node.value not in (0, None)
    ]
    written = {member.key for member in root.members or ()}
    made: dict[str, Any] = {key: "auto" for key in _FILLED_IN if key not in written}
    # Accelerate silences DeepSpeed's own log.
    made |= {"steps_per_print": float("inf"), **_HALF.get(_mixed_precision(section.document.text), {})}
    members += [_member(key, value, root.start) for key, value in made.items()]
    section.document = Document(section.document.text, mapping(members, root.start, root.end))
    return section


def _mixed_precision(text: str) -> str:
    try:
        top = read_yaml(text).value
    except DocumentError:
        return ""
    return str(top.get("mixed_precision")) if isinstance(top, dict) else ""


def _member(key: str, value: Any, at: int) -> Member:
    if isinstance(value, dict):
        node = mapping([_member(name, inner, at) for name, inner in value.items()], at, at)
        return Member(key, at, at, node, None)
    return Member(key, at, at, Node(value, at, at), None)
