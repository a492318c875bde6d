"""Files of other programs, which share keys with DeepSpeed's config and mean something else by them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dsgen.lint.config_file import ConfigFile, read_config
from dsgen.lint.target import LintTarget

if TYPE_CHECKING:
    from dsgen.lint.kinds import Held

OURS = ("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "zero_allow_untested_optimizer")
"""Keys that tell a DeepSpeed config."""
# GPT-NeoX puts DeepSpeed's keys and its own in one mapping and makes the config of them itself (neox_arguments).
_NEOX = {
    *("pipe_parallel_size", "model_parallel_size", "num_layers", "hidden_size", "num_attention_heads", "seq_length"),
    *("train_iters", "lr_decay_iters", "data_impl", "checkpoint_activations", "distributed_backend", "eval_interval"),
}
_MOST_BY_CHANCE = 1
_ACCELERATE = {"compute_environment", "distributed_type"}
# transformers' fsdp_config, with or without its old prefix.
_FSDP = {
    *("fsdp", "backward_prefetch", "forward_prefetch", "auto_wrap_policy", "transformer_layer_cls_to_wrap"),
    *("reshard_after_forward", "cpu_ram_efficient_loading", "xla_fsdp_settings"),
}


def program_of(keys: Iterable[str]) -> str | None:
    """Whose file has these keys at its top level; None for DeepSpeed's, or nobody's."""
    names = {key.replace("-", "_") for key in keys if isinstance(key, str)}
    if len(names & _NEOX) > _MOST_BY_CHANCE:
        return "GPT-NeoX"
    if names & _ACCELERATE:
        return "Accelerate"
    is_fsdp = names & _FSDP or any(name.startswith("fsdp_") for name in names)
    return "transformers (FSDP)" if is_fsdp and not names & set(OURS) else None


class ForeignFile(ConfigFile):
    """A file of another program: rules for DeepSpeed configs have nothing to say of it."""

    program: str

    @property
    def is_read(self) -> bool:
        """Nothing for those rules to look at."""
        return False


def read_file(data: bytes, target: LintTarget, name: str = "") -> ConfigFile:
    """Reads a JSON file for whoever the target says loads it."""
    file = read_config(data, target.loaded_by)
    program = program_of(file.value) if file.is_read else None
    if program is not None:
        file = ForeignFile(file.document)
        file.program = program
    if name:
        from pathlib import Path

        file.folder = Path(name).parent
    return file


def further_configs(file: ConfigFile, target: LintTarget) -> "Sequence[Held]":
    """A file of Accelerate in JSON has the rules of those in YAML."""
    if not isinstance(file, ForeignFile) or file.document.root is None:
        return ()
    from dsgen.lint.accelerate_file import accelerate_file
    from dsgen.lint.yaml_file import held_by_accelerate

    own = accelerate_file(file, file.document.root)
    return held_by_accelerate(own, file.document.root, target) if own else ()
