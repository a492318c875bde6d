"""The DeepSpeed configs in a document, read exactly where it can be read, else as far as it is written."""

from collections.abc import Iterator
from dataclasses import dataclass

from dsgen.documents.document import Document, Node, Path
from dsgen.lint import schema as sch
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.kinds import Readable
from dsgen.lint.target import LintTarget
from dsgen.lint.yaml_file import configs_in
from dsgen.lsp.outline import outline
from dsgen.lsp.text import Text
from dsgen.lsp.yaml_outline import yaml_outline


@dataclass(frozen=True, slots=True)
class Config:
    """One config of a document."""

    file: ConfigFile
    target: LintTarget
    """With who loads it, as far as that is known of this config."""
    shown: ConfigFile
    """With the keys whose values code computes."""
    is_exact: bool = True
    """Whether the text could be read; else values that are not written yet are missing."""


def configs(text: Text, target: LintTarget) -> list[Config]:
    """Every config that a document is or holds."""
    if text.kind is None or text.is_too_large:
        return []
    file = text.kind.read(text.data, target, text.name)
    found = list(_exact(file, text, target))
    return found or ([] if file.is_read else list(_sketched(text, target)))


def _exact(file: Readable, text: Text, target: LintTarget) -> Iterator[Config]:
    assert text.kind is not None, "callers have asked"
    if isinstance(file, ConfigFile) and file.is_read:
        yield Config(file, target, file)
    for held in text.kind.further_configs(file, target):
        if isinstance(held.config, ConfigFile) and held.kind == "deepspeed":
            shown = held.left_open if isinstance(held.left_open, ConfigFile) else held.config
            yield Config(held.config, held.target, shown)


def _sketched(text: Text, target: LintTarget) -> Iterator[Config]:
    """What a broken text shows."""
    if text.language is None:
        root, _ = yaml_outline(text.text)
        for file in configs_in(text.text, root):
            yield Config(file, target, file, is_exact=False)
        return
    for root in outline(text.text, text.language).roots:
        if text.language == "json" or looks_like_config(root):
            file = ConfigFile(Document(text.text, root))
            yield Config(file, target, file, is_exact=False)


def looks_like_config(root: Node) -> bool:
    """Whether a dict in code, of which no more is known, has keys of a config."""
    known: sch.Schema = sch.deepspeed_schema()["properties"]
    keys = {member.key for member in root.members or ()}
    # One such key may be anybody's; names with DeepSpeed's own words are not.
    telling = keys & {"zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer"}
    return bool(telling) or len(keys & set(known)) > 1


def key_at(config: Config, offset: int) -> Path | None:
    """The key on which an offset lies, or on whose value."""
    root = config.shown.document.root
    waiting: list[tuple[Path, Node]] = [((), root)] if root else []
    while waiting:
        path, node = waiting.pop()
        for member in node.members or ():
            here = (*path, member.key)
            is_leaf = member.node.members is None and member.node.items is None
            if member.key_start <= offset < member.key_end and not _stands_for_more(member.node, offset):
                return here
            if is_leaf and member.node.start <= offset < member.node.end:
                return here
            waiting.append((here, member.node))
    return None


def _stands_for_more(node: Node, offset: int) -> bool:
    """Whether a section that nobody wrote begins at the key of one of its members."""
    return any(member.key_start <= offset < member.key_end for member in node.members or ())
