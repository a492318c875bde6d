"""Optimizers that ZeRO or its offload doesn't take.

What ZeRO takes only on the user's word (``zero_allow_untested_optimizer``) is legal: see optimizers.py.
"""

from dsgen.legality.values import Case, Row

ONE_BIT = frozenset({"onebitadam", "zerooneadam", "onebitlamb"})


def _type(case: Case) -> str:
    return case.training.optimizer.type.lower()


ROWS = (
    Row(
        name="lamb-with-optimizer-offload",
        formats=("deepspeed",),
        forbidden=lambda case: _type(case) == "lamb" and case.plan.offload_optimizer != "none",
        why=(
            "DeepSpeed's Lamb is a CUDA kernel without a CPU counterpart, so it can't step offloaded states; "
            "use adamw, or keep the optimizer on the GPU"
        ),
        source="deepspeed/ops/lamb/fused_lamb.py:FusedLamb; deepspeed/runtime/engine.py:_configure_basic_optimizer",
        fields=("offload_optimizer",),
    ),
    Row(
        name="one-bit-optimizer-with-zero",
        formats=("deepspeed",),
        forbidden=lambda case: _type(case) in ONE_BIT and case.plan.zero_stage > 0,
        why="1-bit Adam and 1-bit Lamb do their own communication and are not compatible with ZeRO; use zero_stage 0",
        source="deepspeed/runtime/engine.py:_configure_basic_optimizer (0.19.6)",
        until="0.19.7",
        fields=("zero_stage",),
    ),
    Row(
        name="one-bit-optimizer-removed",
        formats=("deepspeed",),
        forbidden=lambda case: _type(case) in ONE_BIT,
        why="DeepSpeed removed the 1-bit optimizers in 0.19.7 ('not a supported DeepSpeed Optimizer'); use adamw",
        source="deepspeed/runtime/config.py:DEEPSPEED_OPTIMIZERS",
        since="0.19.7",
    ),
    Row(
        name="muon-at-stage-3",
        formats=("deepspeed",),
        forbidden=lambda case: _type(case) == "muon" and case.plan.zero_stage == 3,
        why="Muon came to ZeRO stage 3 only in DeepSpeed 0.18.9; use zero_stage 2 or a newer DeepSpeed",
        source="deepspeed/runtime/engine.py:_configure_basic_optimizer (0.17.6 to 0.18.8)",
        since="0.17.6",
        until="0.18.9",
        fields=("zero_stage",),
    ),
)
