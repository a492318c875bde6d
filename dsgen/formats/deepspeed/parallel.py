"""Split models: AutoTP by a key of the config, Ulysses by an argument of the Trainer."""

from collections.abc import Iterator

from dsgen.formats.deepspeed.case import Order
from dsgen.formats.values import NotCarried, Reason
from dsgen.plan import Plan


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


def gradient_factor(plan: Plan) -> int:
    """How many times too large the gradient comes out where ranks share sequences.

    The Trainer gathers the loss of all ranks of a sequence, whose backward pass adds up what each of them sends back
    (transformers/integrations/deepspeed.py:deepspeed_sp_compute_loss); below stage 3 DeepSpeed adds up over these ranks
    again (runtime/zero/stage_1_and_2.py divides by the ranks / sequence_parallel_size), at stage 3 with reduce_scatter
    it averages over all (runtime/comm/coalesced_collectives.py). Seen with transformers 5.24.0 and DeepSpeed 0.19.8
    (tests/formats/test_split_folders.py). Adam does not notice; clipping does.
    """
    return plan.ulysses if plan.zero_stage < 3 else 1


def sequences_elsewhere(order: Order) -> Iterator[NotCarried]:
    """Ulysses has no key that acts by itself: Accelerate hands DeepSpeed the groups and splits each batch."""
    plan = order.case.plan
    if plan.ulysses == 1:
        return
    factor = gradient_factor(plan)
    norm = f"; the gradient norm that is logged is {factor} times the true one" if factor > 1 else ""
    attention = ATTENTION[order.case.training.attention]
    yield NotCarried(
        "ulysses",
        plan.ulysses,
        f"TrainingArguments(parallelism_config=ParallelismConfig(sp_size={plan.ulysses}, "
        f"dp_shard_size={plan.data_parallel}, sp_handler=DeepSpeedSequenceParallelConfig("
        f'sp_seq_length_is_variable=True, sp_attn_implementation="{attention}")))',
        f"sequence_parallel_size in the file would only change the batch sizes; every batch needs position_ids{norm}",
    )


# transformers/modeling_utils.py: names of attn_implementation.
ATTENTION = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
