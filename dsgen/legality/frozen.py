"""In which type FSDP2 can keep frozen weights."""

from dsgen.facts.versions import version_key
from dsgen.target import Target


def keeps_frozen_in_16_bit(target: Target) -> bool:
    """Whether frozen weights may have another type than the trained ones of their unit: since torch 2.8 only the
    trained ones must be alike ("uniform original parameter dtype",
    torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:_init_mp_dtypes)."""
    return version_key(target.version("torch")) >= version_key("2.8")
