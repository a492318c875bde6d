"""DeepSpeed configs in YAML: a whole file, or a section of the file of some trainer."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as Folder

from dsgen.documents.document import Document, DocumentError, Node, Path
from dsgen.documents.source import decode
from dsgen.documents.yaml_text import read_yaml
from dsgen.lint.accelerate_file import AccelerateFile, accelerate_file
from dsgen.lint.accelerate_section import SECTION, AccelerateSection, is_accelerate
from dsgen.lint.config_file import ConfigFile
from dsgen.lint.foreign import program_of, read_file
from dsgen.lint.kinds import Held
from dsgen.lint.target import LintTarget

SECTIONS = ("deepspeed", "deepspeed_config", "ds_config")
"""Under these keys trainers hand a config on as it is. Accelerate's deepspeed_config has keys of its own."""
OURS = ("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size")
_DEPTH = 3
# PyYAML takes a second for a megabyte.
MOST_BYTES = 256 << 10


def read_yaml_file(data: bytes, target: LintTarget, name: str = "") -> ConfigFile:
    """The config that a file is or holds; of several the first one.

    In braces it is what loaders of JSON take whatever the file's name: those read numbers that YAML does not.
    """
    file = _read(data, target)
    file.folder = Folder(name).parent if name else None
    return file


def _read(data: bytes, target: LintTarget) -> ConfigFile:
    text = ""
    if data.lstrip().startswith(b"{"):
        config = read_file(data, target)
        if config.document.problem is None:
            return config
    try:
        if len(data) > MOST_BYTES:
            raise DocumentError(f"the file is larger than {MOST_BYTES >> 10} KiB: no config is, so it was not read", 0)
        text = decode(data)
        root = read_yaml(text)
        first = next(configs_in(text, root), None)
        if first is not None and not isinstance(first, AccelerateSection):
            return first
        # Nothing to look at but comments; what the file holds comes with further_configs.
        return ConfigFile(Document(text, Node(None, root.start, root.end, root.members)), dialect="yaml")
    except DocumentError as problem:
        return ConfigFile(Document(text, problem=problem), dialect="yaml")


def further_configs(file: ConfigFile, target: LintTarget) -> list[Held]:
    """The configs in a file besides the first one, those that Accelerate makes, and Accelerate's file itself."""
    if file.dialect != "yaml" or file.document.problem is not None:
        return []
    text = file.document.text
    root = read_yaml(text)
    own = accelerate_file(file, root)
    of_accelerate = held_by_accelerate(own, root, target)
    others = [config for config in configs_in(text, root) if not isinstance(config, AccelerateSection)]
    return [
        *of_accelerate,
        *(Held(config, target) for config in others if config.prefix != file.prefix or not file.is_read),
    ]


def held_by_accelerate(own: AccelerateFile | None, root: Node, target: LintTarget) -> list[Held]:
    """Accelerate's file itself, and the config that Accelerate makes of its section."""
    processes = next((member.node.value for member in root.members or () if member.key == "num_processes"), None)
    ranks = target.world_size or (processes if type(processes) is int and processes > 0 else None)
    by_accelerate = replace(target, loaded_by="accelerate", world_size=ranks)
    text = own.document.text if own else ""
    made = [Held(config, by_accelerate) for config in configs_in(text, root) if isinstance(config, AccelerateSection)]
    return [Held(own, by_accelerate, kind="accelerate"), *made] if own else made


def configs_in(text: str, root: Node) -> Iterator[ConfigFile]:
    """Every DeepSpeed config that a YAML text is, holds, or makes Accelerate write."""
    for path, node in _sections(root, (), 0):
        if path and path[-1] == SECTION and is_accelerate(node):
            yield AccelerateSection(text, node, path)
        else:
            yield ConfigFile(Document(text, node), dialect="yaml", prefix=path)


def _sections(node: Node, path: Path, depth: int) -> Iterator[tuple[Path, Node]]:
    keys = {member.key for member in node.members or ()}
    ours = bool(keys & set(OURS)) and program_of(keys) is None and (not path or path[-1] in SECTIONS)
    if ours or (path and path[-1] == SECTION and is_accelerate(node)):
        yield path, node
    elif depth < _DEPTH:
        for member in node.members or ():
            yield from _sections(member.node, (*path, member.key), depth + 1)
