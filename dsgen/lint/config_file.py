"""A DeepSpeed config as rules see it: values by path. Places and edits are for the runner."""

from collections.abc import Callable, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from dsgen.documents import edits as edit
from dsgen.documents.document import Document, DocumentError, Path, Range, Span
from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.json_text import read_json
from dsgen.documents.source import decode
from dsgen.lint.finding import Edit, Fix
from dsgen.lint.ignores import Ignore, comments_of, ignores, may_hold_ignores
from dsgen.lint.mark import Change, On, Step
from dsgen.lint.target import LintTarget

if TYPE_CHECKING:
    from pathlib import Path as Folder

    from dsgen.target import Loader


Dialect = Literal["json", "yaml", "python"]
"""json: plain JSON or HJSON, by who loads it. The others reach DeepSpeed as a dict: what their readers keep counts."""


class ConfigFile:
    """What stands in the file, or why it could not be read."""

    def __init__(self, document: Document, *, dialect: Dialect = "json", prefix: Path | None = ()) -> None:
        self.document = document
        self.dialect = dialect
        self.prefix = prefix
        """Where the config stands in the file: keys down to it. Paths in rules start at the config; None in code."""
        self.folder: Folder | None = None
        """Where the file lies, for what it names; None where it lies nowhere."""
        self.layout: Callable[[], Document] | None = None
        """In code: the dict with all its members and their commas, for edits."""
        self.memo: dict[Any, Any] = {}
        """Work that several rules share."""

    @property
    def is_read(self) -> bool:
        """Whether there is an object for rules to look at."""
        return isinstance(self.value, dict)

    @property
    def value(self) -> Any:
        """The whole config; None where it could not be read."""
        return self.document.root.value if self.document.root else None

    def get(self, *path: str, default: Any = None) -> Any:
        """The value at a path of keys."""
        value = self.value
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def has(self, *path: str) -> bool:
        """Whether a key stands there, whatever its value."""
        return self.get(*path, default=self) is not self

    def section(self, *path: str) -> dict[str, Any]:
        """The object at a path; an empty one where there is none."""
        value = self.get(*path)
        return value if isinstance(value, dict) else {}

    @property
    def holds_auto(self) -> bool:
        """Whether "auto" stands anywhere: then a trainer is meant to load the file."""
        return '"auto"' in self.document.text

    # For the runner.

    def path_of(self, where: object) -> Path | None:
        """Keys from the top of the file to what a mark points at; None where there are none to show."""
        return (*self.prefix, *where) if isinstance(where, tuple) and self.prefix is not None else None

    @cached_property
    def ignores(self) -> tuple[Ignore, ...]:
        """The comments that hide findings; plain JSON has none."""
        text = self.document.text
        if self.document.root is None or not may_hold_ignores(text):
            return ()
        return ignores(text, self.document.lines, comments_of(self.document))

    def locate(self, where: Path | Span, on: On = "value") -> Range:
        """Where a value or its key stands; a key that is missing is shown at the object that lacks it."""
        return self.document.lines.range(*self._offsets(where, on))

    def _offsets(self, where: Path | Span, on: On) -> tuple[int, int]:
        if isinstance(where, Span):
            return where.start, where.end
        if self.document.problem is not None:
            return self.document.problem.start, self.document.problem.end
        while True:
            node, member = self.document.node(where), self.document.member(where)
            if member is not None and (on == "key" or (node is not None and node.members)):
                return member.key_start, member.key_end
            if node is not None:
                return (node.start, node.end) if where or not node.members else (node.start, node.start + 1)
            where, on = where[:-1], "key"

    def topics(self, target: LintTarget) -> Set[str]:
        """Its keys at any depth, the kinds of slips in it, and what else rules are about."""
        from dsgen.lint.topics import topics_of  # late: it brings the schema along

        return topics_of(self, target)

    def fix(self, change: Change) -> Fix | None:
        """The edits of a change; None where they cannot be made here."""
        spans: list[edit.TextEdit] = []
        for step in _merged(change.steps):
            made = self._edits(step)
            if made is None:
                return None
            spans += made
        lines = self.document.lines
        return Fix(
            change.description, tuple(Edit(lines.range(a, b), text) for a, b, text in sorted(spans)), change.safe
        )

    def _edits(self, step: Step) -> list[edit.TextEdit] | None:
        if isinstance(step.path, Span):
            return [(step.path.start, step.path.end, step.value)]
        if self.dialect == "yaml":
            return _yaml_edits(self.document, step)
        if self.dialect == "python":
            from dsgen.lint.python.layout import edits_of  # late: few fixes are in code

            return edits_of(self.layout(), step) if self.layout else None
        *parent, key = step.path
        if step.action == "remove":
            return edit.remove(self.document, tuple(parent), step.value or [str(key)])
        if step.action == "replace":
            return edit.replace(self.document, step.path, step.value)
        if step.action == "rename":
            return edit.rename(self.document, step.path, step.value)
        return edit.insert(self.document, tuple(parent), str(key), step.value)


def _yaml_edits(document: Document, step: Step) -> list[edit.TextEdit] | None:
    from dsgen.documents import yaml_edits  # late: few fixes are in YAML

    *parent, key = step.path
    if step.action == "remove":
        return yaml_edits.remove(document, tuple(parent), step.value or [str(key)])
    if step.action == "replace":
        return yaml_edits.replace(document, step.path, step.value)
    if step.action == "rename":
        return yaml_edits.rename(document, step.path, step.value)
    return yaml_edits.insert(document, tuple(parent), str(key), step.value)


def _merged(steps: tuple[Step, ...]) -> list[Step]:
    """Removals from one mapping become one step, for which comma goes depends on all of them."""
    removed: dict[Path, list[str]] = {}
    for step in steps:
        if step.action == "remove":
            removed.setdefault(step.path[:-1], []).append(str(step.path[-1]))
    others = [step for step in steps if step.action != "remove"]
    return [*(Step("remove", (*parent, keys[0]), keys) for parent, keys in removed.items()), *others]


def read_config(data: bytes, loaded_by: "Loader | None") -> ConfigFile:
    """Reads a file in the dialect of who loads it: DeepSpeed takes HJSON, transformers and accelerate plain JSON."""
    text = ""
    try:
        text = decode(data)
        strict = loaded_by in ("transformers", "accelerate")
        return ConfigFile(Document(text, read_json(text) if strict else read_hjson(text)))
    except DocumentError as problem:
        return ConfigFile(Document(text, problem=problem))


def read_file(data: bytes, target: LintTarget, _name: str = "") -> ConfigFile:
    """Reads a file for whoever the target says loads it."""
    return read_config(data, target.loaded_by)
