"""Traffic inside one micro-batch: tensor, context, Ulysses, expert and pipeline parallelism.

Symbols: T tokens of a rank, h hidden, c bytes of an element, q and k features of queries and keys of all heads, t, p,
v tensor- and pipeline-parallel ranks and chunks.
"""

from dsgen.steptime.attention import widths
from dsgen.steptime.block import BlockCost
from dsgen.steptime.setting import Setting
from dsgen.steptime.sharding import exposed


def per_layer(setting: Setting, block: BlockCost, *, moe: bool) -> tuple[float, float]:
    """Exposed seconds of one layer, forwards and backwards.

    - Tensor parallelism: an all-reduce of c T h after attention and after the MLP, each way (Megatron-LM, arXiv
      1909.08053); with the sequence split, an all-gather and a reduce-scatter, as many bytes (arXiv 2205.05198).
      Nothing runs beside them forwards, unless products are cut into pieces for that; backwards Megatron's run beside
      the weight's gradient.
    - Context parallelism: keys and values, c T 2 k, pass from rank to rank c - 1 times beside the core; backwards with
      their gradients.
    - Ulysses: all-to-alls of queries, keys, values and of the output, c T (2 q + 2 k), each way (arXiv 2309.14509).
    - Experts: all-to-alls of each token to its experts and back, 2 c T h k, each way.
    """
    plan, c, links, arch = setting.plan, setting.width, setting.links, setting.arch
    forward = backward = 0.0
    if plan.tensor_parallel > 1:
        one = links.reduce(c * setting.tokens * arch.hidden, plan.tensor_parallel) * _narrowed(setting)
        work = block.attention + block.mlp
        if setting.training.code.hides_tensor_parallel:
            forward += exposed(2 * one, work.forward)
            backward += exposed(2 * one, work.backward)
        else:
            forward += 2 * one
            backward += exposed(2 * one, work.backward / 2) if setting.megatron else 2 * one
    query, value = widths(setting)
    kept = setting.arch.kv_heads / setting.arch.heads
    if plan.context_parallel > 1:
        size = c * setting.tokens * (query + value) * (kept if arch.mla is None else 1)
        apart = links.nodes_of(plan.context_parallel, plan.tensor_parallel) > 1
        ring = (plan.context_parallel - 1) * links.send(size, apart=apart)
        forward += exposed(ring, block.core.forward)
        backward += exposed(2 * ring, block.core.backward)
    if plan.ulysses > 1:
        size = c * setting.tokens * (query + value) * (1 + (kept if arch.mla is None else 1))
        one = links.exchange(size, plan.ulysses, plan.tensor_parallel)
        forward += one
        backward += one
    if moe and plan.expert_parallel > 1 and arch.moe is not None:
        size = c * setting.tokens * arch.hidden * arch.moe.top_k
        one = 2 * links.exchange(size, plan.expert_parallel, plan.tensor_parallel)
        forward += one
        backward += one
    return forward, backward


def _narrowed(setting: Setting) -> float:
    """torchao's float8 layers under tensor parallelism gather operands in 8 bits where a tensor has one scale, which is
    half of the bytes of the gathers, and so three quarters of all (torchao/float8/float8_tensor_parallel.py)."""
    code = setting.training.code
    return 0.75 if code.eight_bit == "tensorwise" and code.sequence_parallel and not setting.megatron else 1.0


def between_stages(setting: Setting) -> float:
    """Seconds with which one micro-batch waits for what the stage before sends, forwards, and the one behind,
    backwards: c T h / t from each tensor-parallel rank (arXiv 2104.04473, section 4.1) for each of v chunks."""
    plan = setting.plan
    if plan.pipeline_parallel == 1:
        return 0.0
    size = setting.width * setting.tokens / setting.tensor * setting.arch.hidden
    apart = setting.links.nodes_of(plan.world_size) > 1
    return 2 * plan.virtual_stages * setting.links.send(size, apart=apart)
