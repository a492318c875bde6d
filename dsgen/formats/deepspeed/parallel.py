"""Split models: AutoTP by a key of the config, Ulysses by an argument of the Trainer."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order
from dsgen.formats.values import NotCarried, Reason


def tensor_parallel(order: Order) -> Iterator[Reason]:
    """AutoTP splits the linear layers that the model's own plan names (runtime/tensor_parallel/config.py)."""
    plan = order.case.plan
    size = plan.tensor_parallel
    if size == 1:
        return
    yield Reason(
        "tensor_parallel.autotp_size",
        size,
        f"each matrix lies on {size} neighbouring GPUs, which see the same data; the Trainer calls tp_model_init",
    )
    if plan.zero_stage < 3:
        yield Reason(
            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
            True,
            "a saved model holds whole matrices: despite its name Accelerate asks this key of split matrices, too",
        )


def sequences_elsewhere(order: Order) -> Iterator[NotCarried]:
    """Ulysses has no key that acts by itself: Accelerate hands DeepSpeed the groups and splits each batch."""
    plan = order.case.plan
    if plan.ulysses == 1:
        return
    attention = ATTENTION[order.case.training.attention]
    yield NotCarried(
        "ulysses",
        plan.ulysses,
        f"TrainingArguments(parallelism_config=ParallelismConfig(sp_size={plan.ulysses}, "
        f"dp_shard_size={plan.data_parallel}, sp_handler=DeepSpeedSequenceParallelConfig("
        f'sp_seq_length_is_variable=True, sp_attn_implementation="{attention}")))',
        "sequence_parallel_size in the file would only change the batch sizes; every batch needs position_ids; the "
        f"gradient norm that is logged is {plan.ulysses} times the true one",
    )


# transformers/modeling_utils.py: names of attn_implementation.
ATTENTION = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
