"""Weights in few bits, frozen parts, losses and compilation: who has them, and who does not."""

from dsgen.legality.values import Case, Row
from dsgen.shapes.tower import has_tower


def _quantized(case: Case) -> bool:
    return case.training.method.quantization is not None


def _one_flat_parameter(case: Case) -> bool:
    return bool(case.training.freeze) and case.shapes.factory is not None


ROWS = (
    Row(
        name="quantized-weights-at-stage-3",
        formats=("deepspeed",),
        forbidden=lambda case: _quantized(case) and case.plan.zero_stage == 3,
        why=(
            "dsgen does not count sharded weights in few bits yet (stage 3 shards them only where "
            "bnb_4bit_quant_storage is the compute type); use zero_stage 0 to 2, or method: {{type: lora}}"
        ),
        source="dsgen itself: dsgen/memory/states.py",
        fields=("zero_stage", "method"),
    ),
    Row(
        name="quantized-weights-in-fsdp2",
        formats=("fsdp2",),
        forbidden=_quantized,
        why=(
            "dsgen neither counts nor writes weights in few bits under FSDP2; use target: {{format: deepspeed}}, or "
            "method: {{type: lora}}"
        ),
        source="dsgen itself: dsgen/memory/fsdp2, dsgen/formats/fsdp2",
        library="torch",
        fields=("method",),
    ),
    Row(
        name="quantized-weights-in-fp32",
        formats=("deepspeed",),
        forbidden=lambda case: _quantized(case) and case.plan.precision == "fp32",
        why="qlora's weights are unpacked to 16 bits; use precision: bf16 or fp16",
        source="dsgen itself: dsgen/facts/quantizations.csv counts unpacking to 16 bits",
        fields=("method", "precision"),
    ),
    Row(
        name="chunked-loss-of-a-class-of-transformers",
        formats=("deepspeed", "fsdp2"),
        forbidden=lambda case: case.training.loss == "chunked" and case.target.loaded_by == "transformers",
        why=(
            "classes of transformers make all logits before the loss is taken, so it can't be taken by chunks; use "
            "loss: fused_linear (use_liger_kernel), or loss: full"
        ),
        source="transformers/loss/loss_utils.py:ForCausalLMLoss",
        library="transformers",
        fields=("loss",),
    ),
    Row(
        name="vision-tower-in-fsdp2",
        formats=("fsdp2",),
        forbidden=lambda case: has_tower(case.shapes),
        why=(
            "dsgen writes FSDP2 for decoders only: a vision tower beside one has blocks of its own to shard; use "
            "target: {{format: deepspeed}}"
        ),
        source="dsgen itself: dsgen/formats/fsdp2/sharding.py",
        library="torch",
    ),
    Row(
        name="frozen-parts-of-a-factorys-model",
        formats=("deepspeed", "fsdp2"),
        forbidden=_one_flat_parameter,
        why="the names in a factory's model are its own, so freeze can't name any; freeze them in the factory",
        source="dsgen itself: dsgen/shapes/freeze.py",
        fields=("freeze",),
    ),
)
