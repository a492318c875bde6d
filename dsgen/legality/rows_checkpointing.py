"""Activation checkpointing that the loader can't do."""

from dsgen.legality.values import Row

ROWS = (
    Row(
        name="selective-checkpointing-with-trainer",
        formats=("deepspeed",),
        forbidden=lambda case: case.target.loaded_by == "transformers" and case.plan.checkpointing.kind == "selective",
        why=(
            "the Trainer's arguments checkpoint whole decoder layers and know no selection of operators; "
            "use checkpointing: full, or {{every: n}} where transformers is new enough"
        ),
        source="transformers/modeling_utils.py:activation_checkpointing_enable",
        library="transformers",
        fields=("checkpointing",),
    ),
    Row(
        name="every-nth-checkpointing-with-old-trainer",
        formats=("deepspeed",),
        forbidden=lambda case: case.target.loaded_by == "transformers" and case.plan.checkpointing.kind == "every",
        why=(
            "before transformers 5.16.0 the Trainer checkpoints all decoder layers or none; use checkpointing: full, "
            "or a newer transformers"
        ),
        source="transformers/modeling_utils.py:activation_checkpointing_enable (every_n_layers, pull request 48200)",
        library="transformers",
        until="5.16.0",
        fields=("checkpointing",),
    ),
    Row(
        name="checkpointing-more-layers-apart-than-there-are",
        formats=("deepspeed", "fsdp2"),
        forbidden=lambda case: (
            case.plan.checkpointing.kind == "every"
            and not 1 <= case.plan.checkpointing.every <= len(case.shapes.blocks)
        ),
        why=(
            "checkpointing {checkpointing} is further apart than the model has layers, so next to nothing would be "
            "recomputed; use a smaller number, or checkpointing: none"
        ),
        source="transformers/modeling_utils.py:activation_checkpointing_enable (every_n_layers counts decoder layers)",
        fields=("checkpointing",),
    ),
)
