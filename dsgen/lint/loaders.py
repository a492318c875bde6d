"""How code and launch lines tell each loader of a config."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it brings the whole spec along, which a lint does not need
    from dsgen.target import Loader

# Arguments before the one that counts, with calls in them two deep.
_BEFORE = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*?"
# How each loader is told of a file, with FILE for its path up to the name.
TOLD: "tuple[tuple[Loader, str], ...]" = (
    ("deepspeed", r"\bdeepspeed\.initialize\(" + _BEFORE + r"\bconfig(?:_params)?\s*=\s*FILE"),
    ("deepspeed", r"--deepspeed_config[=\s]+FILE"),
    ("transformers", r"\b(?:TrainingArguments|\w+Config)\(" + _BEFORE + r"\bdeepspeed\s*=\s*FILE"),
    ("transformers", r"--deepspeed[=\s]+FILE"),
    ("accelerate", r"\bhf_ds_config\s*=\s*FILE"),
    ("accelerate", r"\bdeepspeed_config_file\s*:\s*FILE"),
    ("accelerate", r"--deepspeed_config_file[=\s]+FILE"),
    ("lightning", r"\bDeepSpeedStrategy\(" + _BEFORE + r"\bconfig\s*=\s*FILE"),
)
