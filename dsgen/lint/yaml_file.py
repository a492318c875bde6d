"""DeepSpeed configs in YAML: a whole file, or a section of the file of some trainer."""

from collections.abc import Iterator

from dsgen.documents.document import Document, DocumentError, Node, Path
from dsgen.documents.source import decode
from dsgen.documents.yaml_text import read_yaml
from dsgen.lint.config_file import ConfigFile, read_config
from dsgen.lint.kinds import Held
from dsgen.lint.target import LintTarget

SECTIONS = ("deepspeed", "deepspeed_config", "ds_config")
"""Under these keys trainers hand a config on as it is. Accelerate's deepspeed_config has keys of its own."""
OURS = ("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size")
_DEPTH = 3
# PyYAML takes a second for a megabyte.
MOST_BYTES = 256 << 10


def read_yaml_file(data: bytes, target: LintTarget, _name: str = "") -> ConfigFile:
    """The config that a file is or holds; of several the first one.

    In braces it is what loaders of JSON take whatever the file's name: those read numbers that YAML does not.
    """
    text = ""
    if data.lstrip().startswith(b"{"):
        config = read_config(data, target.loaded_by)
        if config.is_read:
            return config
    try:
        if len(data) > MOST_BYTES:
            raise DocumentError(f"the file is larger than {MOST_BYTES >> 10} KiB: no config is, so it was not read", 0)
        text = decode(data)
        return next(configs_in(text, read_yaml(text)), ConfigFile(Document(text, Node(None, 0, 0)), dialect="yaml"))
    except DocumentError as problem:
        return ConfigFile(Document(text, problem=problem), dialect="yaml")


def further_configs(file: ConfigFile, target: LintTarget) -> list[Held]:
    """The configs in a file after the first one."""
    if not file.is_read or file.dialect != "yaml":
        return []
    text = file.document.text
    return [Held(config, target) for config in list(configs_in(text, read_yaml(text)))[1:]]


def configs_in(text: str, root: Node) -> Iterator[ConfigFile]:
    """Every DeepSpeed config that a YAML text is or holds."""
    for path, node in _sections(root, (), 0):
        yield ConfigFile(Document(text, node), dialect="yaml", prefix=path)


def _sections(node: Node, path: Path, depth: int) -> Iterator[tuple[Path, Node]]:
    keys = {member.key for member in node.members or ()}
    if keys & set(OURS) and (not path or path[-1] in SECTIONS):
        yield path, node
    elif depth < _DEPTH:
        for member in node.members or ():
            yield from _sections(member.node, (*path, member.key), depth + 1)
