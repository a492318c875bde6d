"""How sure the whole-GPU figure is: a relative error for each kind of part, added up.

Added, not squared: what is wrong about one block is wrong about all of them.
"""

from collections.abc import Mapping

from dsgen.facts.constants import constant
from dsgen.memory.ledger import Part

_KINDS: Mapping[Part, str] = {
    "parameters": "band_states",
    "gradients": "band_states",
    "master_weights": "band_states",
    "optimizer_states": "band_states",
    "gathered_parameters": "band_states",
    "residents": "band_states",
    "activations": "band_activations",
    "logits": "band_activations",
    "buffers": "band_working",
    "temporaries": "band_working",
    "framework": "band_framework",
}


def band(parts: Mapping[Part, int]) -> int:
    """Half the width of the band around the sum of ``parts``, in bytes."""
    return int(sum(size * constant(_KINDS[part]) for part, size in parts.items()))
