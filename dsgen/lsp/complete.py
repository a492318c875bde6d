"""What may be written at the cursor: keys of the section that the target version reads, and values of a key."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsgen.documents.document import Document, Node
from dsgen.lint import effective, versions
from dsgen.lint import schema as sch
from dsgen.lint.accelerate_section import PATHS, SECTION, is_accelerate
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.target import LintTarget
from dsgen.lint.yaml_file import OURS, SECTIONS
from dsgen.lsp.configs import looks_like_config
from dsgen.lsp.keys import Section, said, section_at, types_of
from dsgen.lsp.offers import Offer, Style, few_numbers, key_offer, value_offer
from dsgen.lsp.outline import Cursor, outline, root_at
from dsgen.lsp.text import Text
from dsgen.lsp.yaml_outline import yaml_outline

# A scan of more than this would hold up typing.
_MOST_CHARACTERS = 512 << 10
# Names under which code makes or hands over a config, before its first brace.
_HANDED_OVER = re.compile(
    r"(?:deepspeed|ds_?config|ds_?params|config_params)\w*[\"']?\s*(?::[^=\n]*)?[:=]\s*(?:dict\()?$", re.I
)
_ACCELERATE_FILE = {"compute_environment", "distributed_type"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the cursor is, in terms of a config."""

    config: ConfigFile
    target: LintTarget
    cursor: Cursor
    style: Style
    is_accelerate: bool = False

    @property
    def stage(self) -> int | None:
        return effective.stage(self.config, self.target)


def completions(text: Text, offset: int, target: LintTarget) -> list[Offer]:
    """Everything that may be written at an offset; nothing where no config is being written."""
    if text.kind is None or len(text.text) > _MOST_CHARACTERS or text.is_too_large:
        return []
    place = _in_yaml(text, offset, target) if text.language is None else _in_brackets(text, offset, target)
    if place is None or "\n" in text.text[place.cursor.start : place.cursor.end]:
        return []
    found = _by_accelerate(place) if place.is_accelerate else _by_deepspeed(place)
    return sorted(found, key=lambda offer: offer.rank)


def _in_brackets(text: Text, offset: int, target: LintTarget) -> _Place | None:
    assert text.language is not None, "callers have asked"
    if text.language == "python" and "eepspeed" not in text.text:
        return None
    seen = outline(text.text, text.language, offset)
    root = root_at(seen.roots, seen.cursor.root) if seen.cursor else None
    if seen.cursor is None or root is None:
        return None
    if text.language == "python":
        handed_over = _HANDED_OVER.search(text.text, max(0, root.start - 200), root.start)
        if not handed_over and not looks_like_config(root):
            return None
        style = Style("python")
    else:
        style = Style("json", is_bare=not seen.has_braces or text.name.lower().endswith(".hjson"))
    return _Place(ConfigFile(Document(text.text, root)), target, seen.cursor, style)


def _in_yaml(text: Text, offset: int, target: LintTarget) -> _Place | None:
    root, cursor = yaml_outline(text.text, offset)
    if cursor is None:
        return None
    top = {member.key for member in root.members or ()}
    for depth in range(len(cursor.path), -1, -1):
        prefix = cursor.path[:depth]
        node = Document(text.text, root).node(prefix) if prefix else root
        within = replace(cursor, path=cursor.path[depth:])
        node = node if node is not None and node.members is not None else Node({}, 0, 0, members=())
        config = ConfigFile(Document(text.text, node), dialect="yaml", prefix=prefix)
        if prefix and prefix[-1] == SECTION and (is_accelerate(node) or top & _ACCELERATE_FILE):
            return _Place(config, replace(target, loaded_by="accelerate"), within, Style("yaml"), is_accelerate=True)
        is_whole = not prefix and not top & _ACCELERATE_FILE and bool(top & set(OURS) or text.may_become_ours)
        if is_whole or (prefix and prefix[-1] in SECTIONS):
            return _Place(config, target, within, Style("yaml"))
    return None


def _by_deepspeed(place: _Place) -> Iterator[Offer]:
    section = section_at(place.config.section(), place.cursor.path, place.target)
    if section is None:
        return
    if place.cursor.key is None:
        yield from _keys(section, place)
    else:
        schema = section.known.get(place.cursor.key)
        if schema is not None:
            yield from _values(place.cursor.key, schema, section, place)


def _keys(section: Section, place: _Place) -> Iterator[Offer]:
    cursor, version = place.cursor, place.target.deepspeed
    present = _present(place.config, cursor)
    # Under whatever name a key stands there, it is the same key.
    present |= {other for key in present if (other := _other_name(section.known.get(key, {})))}
    required = section.schema.get("required", ())
    for key, schema in section.known.items():
        facts = sch.facts(schema)
        is_right = sch.exists(schema, version) and not schema.get("deprecated") and "dead" not in facts
        if key in present or "alias_of" in facts or not is_right:
            continue
        words = sch.keywords(schema, version)
        drawback = _drawback(facts, place)
        yield key_offer(
            key,
            words,
            cursor,
            place.style,
            detail=drawback or types_of(words),
            markdown=said(schema, place.target, place.stage),
            rank=2 if drawback else 0 if key in required else 1,
        )


def _other_name(schema: sch.Schema) -> str | None:
    """The name that a key has where this one is only another spelling, or an old one."""
    facts = sch.facts(schema)
    return facts.get("alias_of") or facts.get("renamed_to")


def _drawback(facts: Mapping[str, Any], place: _Place) -> str | None:
    """Why somebody may not want a key that is right here."""
    if place.stage is not None and place.stage not in facts.get("stages", (place.stage,)):
        return f"does nothing at stage {place.stage}"
    return f"gone from DeepSpeed {facts['until']} on" if "until" in facts else None


def _present(config: ConfigFile, cursor: Cursor) -> set[str]:
    """Keys that stand there already, but for the one that is being written."""
    node = config.document.node(cursor.path) if cursor.path else config.document.root
    members = (node.members or ()) if node else ()
    return {member.key for member in members if not member.key_start <= cursor.start <= member.key_end}


def _values(key: str, schema: sch.Schema, section: Section, place: _Place) -> Iterator[Offer]:
    words = sch.keywords(schema, place.target.deepspeed)
    cursor, style = place.cursor, place.style
    fillers = sch.facts(words).get("auto", ())
    offered: set[str] = set()
    for rank, (value, detail) in enumerate(_choices(key, words, section, place.target)):
        if style.value(value) not in offered:
            offered.add(style.value(value))
            yield value_offer(value, cursor, style, detail=detail, rank=rank)
    if place.target.loaded_by in fillers or (place.target.loaded_by is None and fillers):
        yield value_offer("auto", cursor, style, detail=f"{' or '.join(fillers)} fills it in", rank=len(offered))


def _choices(key: str, words: Mapping[str, Any], section: Section, target: LintTarget) -> Iterator[tuple[Any, str]]:
    """Values with a word on each, those first that one would choose."""
    default = words.get("default")
    variants = sch.facts(section.schema).get("variants", {})
    if key == variants.get("by"):
        yield from ((name, "") for name in _names(variants, str(words.get("description", "")), target))
        yield from ((name, variants["others"].get("of", "")) for name in variants["others"]["names"])
        return
    types = sch.types(words)
    if "enum" in words:
        values = [value for value in words["enum"] if value is not None]
    elif "boolean" in types:
        values = [True, False]
    elif few_numbers(words):
        values = few_numbers(words)
    else:
        values = [] if default is None or isinstance(default, dict | list) else [default]
    for value in values:
        is_default = value == default and isinstance(value, bool) == isinstance(default, bool)
        yield value, "the default" if is_default else ""


def _names(variants: Mapping[str, Any], description: str, target: LintTarget) -> Iterator[str]:
    """Names of optimizers or schedulers in that version, spelt as the description spells them."""
    spelt = {word.lower(): word for word in re.findall(r"\w+", description)}
    for name in variants["cases"]:
        begins = versions.at_least(target.deepspeed, variants["since"].get(name))
        if begins and versions.before(target.deepspeed, variants["until"].get(name)):
            yield spelt.get(name, name) if variants["ignore_case"] else name


def _by_accelerate(place: _Place) -> Iterator[Offer]:
    """Accelerate's own keys, with what DeepSpeed's key behind each is."""
    cursor, target = place.cursor, place.target
    if cursor.path:
        return
    present = _present(place.config, cursor)
    for key, path in PATHS.items():
        section = section_at({}, path[:-1], target)
        schema = section.known.get(path[-1]) if section else None
        if schema is None or section is None:
            continue
        if cursor.key == key:
            yield from _values(path[-1], schema, section, place)
        elif cursor.key is None and key not in present:
            words = sch.keywords(schema, target.deepspeed)
            markdown = f"`{'.'.join(path)}` of DeepSpeed.\n\n{said(schema, target, None)}"
            yield key_offer(key, words, cursor, place.style, detail=types_of(words), markdown=markdown, rank=1)
