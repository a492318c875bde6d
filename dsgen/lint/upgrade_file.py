"""Every DeepSpeed config in a file under two versions: the file itself, sections of YAML, dicts in code."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsgen.lint.accelerate_made import as_written
from dsgen.lint.accelerate_section import AccelerateSection
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.files import Source
from dsgen.lint.kinds import KINDS
from dsgen.lint.one_config import check_read, read_source
from dsgen.lint.target import LintTarget, make_target
from dsgen.lint.upgrade import Upgrade, upgrade

if TYPE_CHECKING:  # it brings the whole spec along
    from dsgen.target import Loader

ACCELERATE_HELP = (
    "Accelerate's section has no such keys: write a DeepSpeed config, and name it as deepspeed_config_file"
)


@dataclass(frozen=True, slots=True)
class UpgradedFile:
    """One file under two versions."""

    source: Source
    text: str
    upgrades: tuple[Upgrade, ...]
    """Of each config, in the order of the file; places are those of the file as it was."""
    edited: str
    """The text with every edit that keeps something."""

    @property
    def data(self) -> bytes:
        """The edited file as it is saved."""
        encoding = self.source.kind.encoding(self.source.data)
        return self.edited.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "strict")

    @property
    def help(self) -> str | None:
        """What to do about what no edit keeps."""
        lost = [one for one in self.upgrades if isinstance(one.file, AccelerateSection) and one.differences]
        return ACCELERATE_HELP if lost else None


@dataclass(frozen=True, slots=True)
class _Config:
    file: ConfigFile
    left_open: ConfigFile | None
    loaded_by: "Loader | None"


def upgrade_file(source: Source, old: LintTarget, new: LintTarget) -> UpgradedFile | None:
    """Every config of a file; None where it holds none.

    Raises:
        InputError: a config that cannot be read.
    """
    configs = _configs(source, source.data, new)
    if not configs:
        file = source.kind.read(source.data, make_target(loaded_by=new.loaded_by), source.name)
        if source.kind is KINDS[0]:
            read_source(source, new.loaded_by)
        elif isinstance(file, ConfigFile):
            check_read(source, file)
        return None
    text = edited = configs[0].file.document.text
    found = []
    for index, config in enumerate(configs):
        before, after = (replace(target, loaded_by=config.loaded_by) for target in (old, new))
        now = _reader(source, new, index)(edited)
        if now is None:
            continue
        done = upgrade(now, before, after, left_open=config.left_open, read=_reader(source, new, index))
        edited = done.edited
        found.append(replace(done, file=config.file))
    return UpgradedFile(source, text, tuple(found), edited)


def _reader(source: Source, target: LintTarget, index: int) -> Callable[[str], ConfigFile | None]:
    """Reads the same config of the file again from another text."""

    def read(text: str) -> ConfigFile | None:
        encoding = source.kind.encoding(source.data)
        data = text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "strict")
        configs = _configs(source, data, target)
        return configs[index].file if index < len(configs) else None

    return read


def _configs(source: Source, data: bytes, target: LintTarget) -> list[_Config]:
    file = source.kind.read(data, make_target(loaded_by=target.loaded_by), source.name)
    found = []
    if isinstance(file, ConfigFile) and file.is_read:
        found.append(_Config(file, None, target.loaded_by))
    for held in source.kind.further_configs(file, target):
        config, left_open = held.config, held.left_open
        if not isinstance(config, ConfigFile) or held.kind != "deepspeed":
            continue
        if isinstance(config, AccelerateSection):
            config = as_written(config)
        found.append(_Config(config, left_open if isinstance(left_open, ConfigFile) else None, held.target.loaded_by))
    return found
