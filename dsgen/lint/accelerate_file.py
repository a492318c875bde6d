"""A file of Accelerate as its own rules see it: the whole file, the DeepSpeed config that it names, code beside it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from dsgen.documents.document import Document, Node
from dsgen.documents.source import MAX_BYTES
from dsgen.lint.accelerate_section import SECTION
from dsgen.lint.beside import read_beside
from dsgen.lint.config_file import ConfigFile, read_config
from dsgen.lint.target import LintTarget

# How far above the file a path in it may start: it counts from where accelerate launch is called.
_LEVELS = 3

# Keys that accelerate/utils/dataclasses.py:DeepSpeedPlugin._deepspeed_config_checks refuses beside a config file, and
# what they mean in it. Accelerate's own mixed_precision is refused as well.
REFUSED: Mapping[str, tuple[str, ...]] = {
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "gradient_clipping": ("gradient_clipping",),
    "zero_stage": ("zero_optimization", "stage"),
    "offload_optimizer_device": ("zero_optimization", "offload_optimizer", "device"),
    "offload_optimizer_nvme_path": ("zero_optimization", "offload_optimizer", "nvme_path"),
    "offload_param_device": ("zero_optimization", "offload_param", "device"),
    "offload_param_nvme_path": ("zero_optimization", "offload_param", "nvme_path"),
    "zero3_save_16bit_model": ("zero_optimization", "stage3_gather_16bit_weights_on_model_save"),
}


class AccelerateFile(ConfigFile):
    """The whole file, with where it lies."""

    def __init__(self, text: str, root: Node, folder: Path | None) -> None:
        super().__init__(Document(text, root), dialect="yaml")
        self.folder = folder

    @property
    def named(self) -> str | None:
        """The path under deepspeed_config_file."""
        name = self.get(SECTION, "deepspeed_config_file")
        return name if isinstance(name, str) and name not in ("", "none") else None

    def config(self, target: LintTarget) -> tuple[Path, ConfigFile] | None:
        """The DeepSpeed config that the file names, where it lies and can be read."""
        if self.named is None or self.folder is None or target.beside is None:
            return None
        for folder in self._folders():
            data = read_beside(folder / self.named, MAX_BYTES)
            if data:
                config = read_config(data, "accelerate")
                return (folder / self.named, config) if config.is_read else None
        return None

    def _folders(self) -> Iterator[Path]:
        assert self.folder is not None
        folder = self.folder.absolute()
        for place in (folder, *folder.parents)[:_LEVELS]:
            yield place
            if (place / ".git").exists():
                return


def accelerate_file(file: ConfigFile, root: Node) -> AccelerateFile | None:
    """The file as one of Accelerate's, if it speaks of DeepSpeed."""
    keys = {member.key: member.node for member in root.members or ()}
    section = keys.get(SECTION)
    if section is None or not isinstance(section.value, dict) or "zero_optimization" in section.value:
        return None
    return AccelerateFile(file.document.text, root, file.folder)
