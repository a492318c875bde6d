"""One document of an editor: its text as it stands there, and which kind of file it is."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from dsgen.lint.files import Source
from dsgen.lint.kinds import Kind, kind_of
from dsgen.lsp.outline import Language
from dsgen.lsp.positions import Encoding, Positions

# What editors call the languages of files that have no name yet.
_SUFFIXES = {"json": ".json", "jsonc": ".json", "json5": ".json", "hjson": ".hjson", "yaml": ".yaml", "python": ".py"}
_OURS_BY_NAME = ("ds_", "ds-", "deepspeed", "zero")


@dataclass(frozen=True)
class Text:
    """A document at one version."""

    name: str
    """Its path, or one that it might have in the workspace where it has none."""
    text: str
    version: int | None = None
    encoding: Encoding = "utf-16"

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.text, self.encoding)

    @property
    def kind(self) -> Kind | None:
        """By its name; None for files of which the linter knows nothing."""
        return kind_of(self.name)

    @property
    def language(self) -> Language | None:
        """The brackets in which it is written; None for YAML in block style."""
        if self.name.lower().endswith(".py"):
            return "python"
        if self.name.lower().endswith((".yaml", ".yml")) and not self.text.lstrip("\ufeff \t\r\n").startswith("{"):
            return None
        return "json"

    @property
    def size(self) -> int:
        """In bytes, where that can matter."""
        return len(self.text) if self.text.isascii() else len(self.text.encode("utf-8", "surrogatepass"))

    @property
    def is_too_large(self) -> bool:
        """Whether the linter would not read such a file."""
        return self.kind is not None and (len(self.text) > self.kind.most_bytes or self.size > self.kind.most_bytes)

    @cached_property
    def is_ours(self) -> bool:
        """Whether a search of its folder would find it: by what stands in it."""
        if self.kind is None or self.is_too_large:
            return False
        return self.kind.in_folders(self.text)

    @property
    def may_become_ours(self) -> bool:
        """Whether somebody who starts to write it may want a config: its name says so."""
        if self.kind is None or self.is_too_large:
            return False
        name = PurePath(self.name).name.lower()
        return name.startswith(_OURS_BY_NAME) or "deepspeed" in name

    @property
    def source(self) -> Source:
        """As the linter takes it."""
        assert self.kind is not None, "callers have asked"
        return Source(self.name, self.data, self.kind)

    @property
    def data(self) -> bytes:
        """The bytes that the editor would save."""
        data = self.text.encode("utf-8", "surrogatepass")
        if self.language == "python":
            try:
                assert self.kind is not None, "Python is a kind"
                return self.text.encode(self.kind.encoding(data))
            except (SyntaxError, LookupError, UnicodeError):
                return data
        return data


def name_of_language(language: str | None) -> str:
    """A name for a document that has none."""
    return f"untitled{_SUFFIXES.get(language or '', '')}"
