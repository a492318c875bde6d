"""Which optimizers ZeRO takes without being told that they are untested."""

# The optimizers that stand in DeepSpeed's list, by the lower-case names of a config's optimizer.type
# (deepspeed/runtime/zero/utils.py:ZERO_SUPPORTED_OPTIMIZERS; muon is added in is_zero_supported_optimizer).
TESTED_WITH_ZERO = frozenset({"adam", "adamw", "adagrad", "lion", "muon"})


def needs_untested_flag(optimizer_type: str, zero_stage: int) -> bool:
    """Whether ``zero_allow_untested_optimizer: true`` must stand in the config.

    Without it DeepSpeed stops with 'You are using an untested ZeRO Optimizer'
    (deepspeed/runtime/engine.py:_do_optimizer_sanity_check). Plain SGD is one of these.
    """
    return zero_stage > 0 and optimizer_type.lower() not in TESTED_WITH_ZERO
