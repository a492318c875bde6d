"""Sizes of communication and working buffers, computed from the model, each with its reason."""

from math import ceil

from dsgen.plan import Buckets, Device, Plan, Swap
from dsgen.shapes.values import Shapes

# torch.nn.parallel.DistributedDataParallel(bucket_cap_mb=25): a collective of this many bytes
# fills the links; below it, latency shows. In elements of 2 bytes.
DDP_BUCKET = 25 * 2**20 // 2

# deepspeed/runtime/zero/config.py: default of reduce_bucket_size and allgather_bucket_size.
DEEPSPEED_BUCKET = 500_000_000

# Elements that the stage 3 optimizer steps at a time. Each costs 4 bytes of fp32 gradient while its
# group is stepped: 2**28 are 1 GiB. The step reads and writes some 30 bytes an element, 8 GB in a
# group, milliseconds even at 3 TB/s, against microseconds to launch it: larger groups gain nothing.
SUB_GROUP = 2**28
# With NVMe a group is what is read and written at a time, through buffers of 4 bytes an element for
# parameter, gradient and both moments, in pinned host memory of every rank: 2**27 are 2 GiB a rank.
SUB_GROUP_NVME = 2**27
# The least that is written, however little a rank steps (adapters): a group holds no more than there is.
LEAST_SUB_GROUP = 2**20

# deepspeed/runtime/swap_tensor/constants.py: MIN_AIO_BYTES, 1 MiB, is the least that is read at once.
MIN_SWAP_BUFFER = 2**20 // 2


def buckets_of(shapes: Shapes, shards: int, offload_optimizer: Device = "none") -> Buckets:
    """Buffer sizes in elements, for a model sharded over ``shards`` ranks.

    Validity: decoders trained by DeepSpeed; at stages that have no such buffer the value is unused.
    """
    hidden = shapes.architecture.hidden
    trainable = max(shapes.trainable, 1)
    reduce = min(trainable, DEEPSPEED_BUCKET, max(DDP_BUCKET, hidden**2, shapes.largest_trainable_block_tensor))
    prefetch = min(shapes.parameters, int(0.9 * hidden**2))
    live = min(shapes.parameters, _gathered_together(shapes) + prefetch)
    group = SUB_GROUP_NVME if offload_optimizer == "nvme" else SUB_GROUP
    return Buckets(
        reduce=reduce,
        allgather=_even(reduce),
        prefetch=prefetch,
        max_live_parameters=live,
        max_reuse_distance=live,
        persistence_threshold=min(shapes.parameters, 10 * hidden),
        sub_group_size=max(LEAST_SUB_GROUP, min(group, ceil(trainable / shards))),
    )


def swap_of(shapes: Shapes, shards: int) -> Swap:
    """Host buffers of the offload: DeepSpeed's, but a parameter buffer always holds the largest shard of a rank.

    A shard is ceil(numel / shards) elements; a smaller buffer stops the first swap with "More elements ... than
    buffer size" (deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:get_buffer), a larger one
    only takes pinned memory.
    """
    return Swap(parameter_buffer_size=max(MIN_SWAP_BUFFER, ceil(shapes.largest_tensor / shards)))


def _gathered_together(shapes: Shapes) -> int:
    """Elements that one computation needs at a time, and the next: two layers, or a layer and the embedding."""
    outside = max((tensor.numel for tensor in shapes.outside), default=0)
    return shapes.largest_block + max(shapes.largest_block, outside)


def _even(elements: int) -> int:
    # deepspeed/runtime/zero/stage_1_and_2.py asserts a multiple of nccl_start_alignment_factor, 2.
    return elements + elements % 2


def bucket_reasons(plan: Plan, shapes: Shapes) -> dict[str, str]:
    """Why each size is what it is, under the names of ``dsgen.plan.Buckets``."""
    nvme = plan.offload_optimizer == "nvme"
    group = SUB_GROUP_NVME if nvme else SUB_GROUP
    one_group = plan.buckets.sub_group_size < group
    return {
        "reduce": _reduce_reason(plan.buckets.reduce, shapes),
        "allgather": "as many elements as reduce_bucket_size, and even, as DeepSpeed asks",
        "prefetch": (
            f"0.9 x hidden^2 (hidden {shapes.architecture.hidden}), the size that transformers takes for auto: "
            "about one square weight matrix ahead"
        ),
        "max_live_parameters": (
            "what two neighbouring computations need at a time (the two largest layers, or layer and embedding) plus "
            "what is prefetched"
            if plan.buckets.max_live_parameters < shapes.parameters
            else "the whole model: it is no larger than what is needed at a time"
        ),
        "max_reuse_distance": "as max_live_parameters: what may live anyway is not gathered twice",
        "persistence_threshold": (
            "10 x hidden, the size that transformers takes for auto: norms and biases stay on every GPU, matrices "
            "are sharded"
        ),
        "sub_group_size": (
            "all that one rank steps: a single group"
            if one_group
            else "through buffers of 2 GiB pinned host memory a rank"
            if nvme
            else "1 GiB of fp32 gradients at a time in the optimizer step; larger groups are not faster"
        ),
    }


def _reduce_reason(reduce: int, shapes: Shapes) -> str:
    hidden = shapes.architecture.hidden
    if reduce == shapes.trainable:
        return "all trainable parameters: a larger bucket would only waste memory"
    if reduce == DEEPSPEED_BUCKET:
        return "DeepSpeed's own default, 5e8: the largest layer matrix has more elements and is reduced alone"
    if reduce == DDP_BUCKET:
        return "25 MiB of 16-bit gradients, as PyTorch's DDP: smaller collectives are bound by latency"
    if reduce == hidden**2:
        return f"hidden^2 (hidden {hidden}), the size that transformers takes for auto"
    return "the largest matrix of a decoder layer, so that none needs a collective of its own"
