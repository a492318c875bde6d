"""Megatron's ledger against the formulas of its papers and README."""

from dataclasses import replace

import pytest
from worlds import hardware

from dsgen.memory.account import account
from dsgen.memory.ledger import Ledger
from dsgen.memory.megatron.activations import kept
from dsgen.memory.megatron.stage import padded_vocab, stages
from dsgen.memory.setting import Setting, setting_of
from dsgen.plan import Buckets, Checkpointing, Plan
from dsgen.shapes.tensors import build
from dsgen.shapes.values import Architecture, Shapes
from dsgen.spec.values import Attention, Code, Training
from dsgen.target import Target

H, HEADS, LAYERS, S, B = 1024, 16, 8, 2048, 2
GPT = build(
    "gpt",
    Architecture(
        family="gpt2",
        hf_architecture="",
        layer_class="",
        layers=LAYERS,
        hidden=H,
        heads=HEADS,
        kv_heads=HEADS,
        head_dim=H // HEADS,
        intermediate=4 * H,
        vocab=50257,
        tied=True,
        mlp="gelu",
        norm="layernorm",
        attention_bias="all",
        mlp_bias=True,
    ),
)
BUCKETS = Buckets(
    reduce=1,
    allgather=2,
    prefetch=1,
    max_live_parameters=1,
    max_reuse_distance=1,
    persistence_threshold=1,
    sub_group_size=1,
)


def plan(**changes: object) -> Plan:
    base = {
        "world_size": 8,
        "gpus_per_node": 8,
        "zero_stage": 0,
        "precision": "bf16",
        "checkpointing": Checkpointing(),
        "micro_batch": B,
        "accumulation": 16,
        "buckets": BUCKETS,
    }
    return Plan(**{**base, **changes})  # type: ignore[arg-type]


def arguments(
    attention: Attention = "flash", *, sequence_parallel: bool = False, **changes: object
) -> tuple[object, ...]:
    code = Code(library="megatron", fused=frozenset({"norm"}), sequence_parallel=sequence_parallel, dropout=True)
    return plan(**changes), GPT, Training(attention=attention, code=code), S, hardware(), Target(format="megatron")


def setting(attention: Attention = "flash", *, sequence_parallel: bool = False, **changes: object) -> Setting:
    return setting_of(*arguments(attention, sequence_parallel=sequence_parallel, **changes))  # type: ignore[arg-type]


def ledger(**changes: object) -> Ledger:
    return account(*arguments(**changes))  # type: ignore[arg-type]


def states(told: Ledger) -> int:
    """Bytes at the optimizer step, without workspaces."""
    step = told.device.moments[-1]
    assert step.name == "optimizer step"
    return sum(size for part, size in step.parts.items() if part not in ("framework", "buffers"))


@pytest.mark.parametrize("t", [1, 2, 8])
def test_a_layer_keeps_korthikantis_bytes(t: int) -> None:
    """arXiv 2205.05198: s b h (10 + 24 / t + 5 a s / (h t)); with sequence parallelism s b h (34 / t + 5 a s / (h t));
    selective recomputation drops 5 a s / (h t). Norms' outputs are counted in these, statistics are not."""
    sbh = S * B * H
    scores = 5 * HEADS * S / H
    plain = kept(setting("eager", tensor_parallel=t)).layer
    assert plain == pytest.approx(sbh * (10 + (24 + scores) / t))
    split = kept(setting("eager", sequence_parallel=True, tensor_parallel=t)).layer
    assert split == pytest.approx(sbh * (34 + scores) / t)
    selective = setting(
        "eager", sequence_parallel=True, tensor_parallel=t, checkpointing=Checkpointing("core_attention")
    )
    assert kept(selective).layer == pytest.approx(sbh * 34 / t)
    full = setting("eager", tensor_parallel=t, checkpointing=Checkpointing("full"))
    assert kept(full).layer == 2 * sbh


def test_flash_keeps_statistics_for_scores() -> None:
    assert kept(setting()).layer == S * B * (34 * H + 4 * HEADS)


@pytest.mark.parametrize(("ranks", "expected"), [(1, 50304), (2, 50432), (8, 51200)])
def test_the_vocabulary_is_padded(ranks: int, expected: int) -> None:
    assert padded_vocab(setting(tensor_parallel=ranks)) == expected


def test_eighteen_bytes_a_parameter_or_six_and_twelve_over_the_ranks() -> None:
    """Megatron-LM README: bf16 weights, fp32 gradients."""
    padding = (50304 - 50257) * H
    parameters = GPT.parameters + padding
    assert states(ledger()) == pytest.approx(18 * parameters, rel=1e-6)
    assert states(ledger(zero_stage=1)) == pytest.approx((6 + 12 / 8) * parameters, rel=1e-6)


def test_micro_batches_in_flight() -> None:
    """1F1B: the first of p stages keeps p micro-batches of L / p layers, the last one. Interleaved with v chunks:
    L (1 + (p - 1) / (p v)) on the first (Korthikanti et al., section 4.2.3)."""
    first, last = sorted(stages(setting(pipeline_parallel=4)), key=lambda stage: stage.last)
    assert (first.in_flight, last.in_flight) == (LAYERS, LAYERS / 4)
    first, last = sorted(stages(setting(pipeline_parallel=4, virtual_stages=2)), key=lambda stage: stage.last)
    assert first.in_flight == pytest.approx(LAYERS * (1 + 3 / (4 * 2)))
    few = min(stages(setting(pipeline_parallel=4, accumulation=2)), key=lambda stage: stage.last)
    assert few.in_flight == 2 * LAYERS / 4


def test_the_last_stage_has_the_head_and_the_logits() -> None:
    first, last = sorted(stages(setting(pipeline_parallel=4)), key=lambda stage: stage.last)
    assert last.parameters == first.parameters + 2 * H  # tied: both hold the embedding; the last norm
    told = ledger(pipeline_parallel=4)
    code = Code(library="megatron", last_rank=True)
    values = list(arguments(pipeline_parallel=4))
    values[2] = replace(Training(attention="flash"), code=code)
    only_last = account(*values)  # type: ignore[arg-type]
    assert "logits" in only_last.device.moments[0].parts
    assert only_last.device.peak <= told.device.peak


def test_the_fused_loss_has_its_exponentials_beside_the_logits() -> None:
    """What each compiled part gives is a tensor of its own: 2 + 4 + 4 bytes of each logit in place of 2 + 4."""

    def logits(*fused: str) -> int:
        values = list(arguments())
        code = Code(library="megatron", fused=frozenset(fused))
        values[2] = replace(Training(attention="flash"), code=code)
        return account(*values).device.moments[0].parts["logits"]  # type: ignore[arg-type]

    assert logits("norm") == 6 * 50304 * S * B
    assert logits("norm", "loss") == 10 * 50304 * S * B


def test_gradients_that_are_reduced_in_the_compute_type_are_half_as_large() -> None:
    """grad_reduce_in_fp32 false: 16 bytes a parameter in place of 18."""
    narrow = ledger(gradient_precision="bf16").device.moments[2].parts["gradients"]
    assert ledger().device.moments[2].parts["gradients"] == 2 * narrow


def test_models_with_a_gated_mlp_have_no_dropout_unless_stated() -> None:
    """Two masks of h a layer; what is stated counts, whatever the model."""
    gated = replace(GPT, architecture=replace(GPT.architecture, mlp="swiglu"))

    def layer(shapes: Shapes, dropout: bool | None) -> int:
        values = list(arguments())
        values[1] = shapes
        values[2] = Training(attention="flash", code=Code(library="megatron", dropout=dropout))
        return kept(setting_of(*values)).layer  # type: ignore[arg-type]

    masks = 2 * H * S * B
    assert layer(GPT, None) - layer(GPT, False) == masks
    assert layer(gated, None) == layer(gated, False) == layer(gated, True) - masks
