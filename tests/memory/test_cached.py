"""What the allocator caches, against a replay of a real step: the requests of a Llama-like model with adapters and full
checkpointing that torch runs on fake tensors."""

import math
import random
import weakref
from dataclasses import replace
from typing import Any

import pytest
from replay_lengths import Request, replay
from worlds import LLAMA_2_7B, hardware, plan, shapes_of

from dsgen.facts.constants import constant
from dsgen.memory.account import account
from dsgen.spec.values import Code, Method, Training
from dsgen.target import Target

SHORT, LONG = 512, 1024


def step_requests(vocab: int) -> list[Request]:
    """One step at two lengths, so that each request is fixed bytes and bytes per token."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.checkpoint import checkpoint

    class Log(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.events: list[tuple[int, int]] = []
            self.known: dict[int, int] = {}
            self.count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            for tensor in torch.utils._pytree.tree_leaves(out):
                if isinstance(tensor, torch.Tensor):
                    self._note(tensor.untyped_storage())
            return out

        def _note(self, storage: Any) -> None:
            key = storage._cdata
            if key in self.known or not storage.nbytes():
                return
            self.count += 1
            self.known[key] = self.count
            self.events.append((self.count, storage.nbytes()))
            weakref.finalize(storage, self._gone, key, self.count)

        def _gone(self, key: int, number: int) -> None:
            self.known.pop(key, None)
            self.events.append((-number, 0))

    h, i, heads, layers, rank = 1024, 2816, 8, 6, 8
    linear = torch.nn.functional.linear

    def block(x: Any, w: dict[str, Any]) -> Any:
        def project(y: Any, name: str) -> Any:
            plain = linear(y, w[name])
            if name not in w["adapters"]:
                return plain
            down, up = w["adapters"][name]
            return plain + linear(linear(torch.dropout(y.float(), 0.05, True), down), up).to(y.dtype)

        def norm(y: Any) -> Any:
            wide = y.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(y.dtype) * w["norm"]

        y = norm(x)
        b, s, _ = x.shape
        q, k, v = (project(y, name).view(b, s, heads, -1).transpose(1, 2) for name in ("q", "k", "v"))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + project(mixed.transpose(1, 2).reshape(b, s, h), "o")
        y = norm(x)
        return x + linear(torch.nn.functional.silu(linear(y, w["gate"])) * linear(y, w["up"]), w["down"])

    found: list[list[tuple[int, int]]] = []
    with FakeTensorMode():

        def weight(*shape: int, trained: bool = False) -> Any:
            dtype = torch.float32 if trained else torch.bfloat16
            return torch.empty(shape, dtype=dtype, requires_grad=trained)

        stack = []
        for _ in range(layers):
            adapters = {n: (weight(rank, h, trained=True), weight(h, rank, trained=True)) for n in ("q", "k", "v", "o")}
            shapes = {"q": (h, h), "k": (h, h), "v": (h, h), "o": (h, h), "gate": (i, h), "up": (i, h), "down": (h, i)}
            made: dict[str, Any] = {name: weight(*shape) for name, shape in shapes.items()}
            stack.append(made | {"adapters": adapters, "norm": weight(h)})
        embedding, head = weight(vocab, h), weight(vocab, h)
        for tokens in (SHORT, SHORT, LONG):
            with Log() as log:
                ids = torch.zeros((1, tokens), dtype=torch.long)
                x = torch.nn.functional.embedding(ids, embedding).requires_grad_()
                for w in stack:
                    x = checkpoint(block, x, w, use_reentrant=True)
                logits = linear(x, head).float()
                loss = torch.nn.functional.cross_entropy(logits.view(-1, vocab), ids.view(-1))
                del logits, x
                loss.backward()  # type: ignore[no-untyped-call]
                del loss, ids
            found.append(_in_order(log.events))
    first, second = found[1], found[2]
    assert [name for name, _ in first] == [name for name, _ in second]
    slopes = [(more - size) / (LONG - SHORT) for (_, size), (_, more) in zip(first, second, strict=True)]
    return [(name, size - slope * SHORT, slope) for (name, size), slope in zip(first, slopes, strict=True)]


def _in_order(events: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ids in the order in which they are asked for."""
    order: dict[int, int] = {}
    found = []
    for name, size in events:
        if name > 0:
            order[name] = len(order) + 1
        if abs(name) in order:
            found.append((order[abs(name)] if name > 0 else -order[abs(name)], size))
    return found


@pytest.fixture(scope="module", params=[8_000, 40_000])
def requests(request: pytest.FixtureRequest) -> list[Request]:
    """Of a vocabulary 8 and 40 times as wide as the model: that of Llama-2 7B, and that of Qwen 7B."""
    return step_requests(request.param)


def test_the_same_lengths_leave_a_fifth(requests: list[Request]) -> None:
    more = replay(requests, [2048] * 3) - 1
    assert constant("cache_steady") - 0.15 <= more <= constant("cache_steady") + 0.15


def test_lengths_that_vary_leave_more_than_is_needed(requests: list[Request]) -> None:
    """The constant lies among what is replayed for short, middling and mostly cut samples."""
    found = []
    for median in (200, 500, 1000):
        chance = random.Random(median)
        lengths = [max(16, min(2048, int(chance.lognormvariate(math.log(median), 0.8)))) for _ in range(100)]
        found.append(replay(requests, lengths) - 1)
    # Where most samples are cut to the same length, hardly more is left than where all are the same.
    assert min(found) <= constant("cache_varied") <= max(found), found


@pytest.mark.parametrize("varies", [False, True])
def test_the_share_is_taken_of_what_is_made_anew(varies: bool) -> None:
    training = Training(attention="flash", method=Method(type="lora"), code=Code(lengths_vary=varies))
    decided = plan(zero_stage=0, world_size=1, gpus_per_node=1, micro_batch=4)
    device = account(decided, shapes_of(LLAMA_2_7B, training), training, 4096, hardware(), Target(format="ddp")).device
    share = constant("cache_varied" if varies else "cache_steady")
    largest = device.moments[1].parts
    anew = sum(size for part, size in largest.items() if part not in ("parameters", "optimizer_states", "framework"))
    assert device.reserved - device.allocated == pytest.approx(share * anew, rel=0.01)


def test_expandable_segments_leave_nothing_split() -> None:
    training = Training(code=Code(expandable_segments=True))
    decided = plan(zero_stage=0, world_size=1, gpus_per_node=1, precision="bf16", micro_batch=4)
    training = replace(training, method=Method(type="lora"))
    device = account(decided, shapes_of(LLAMA_2_7B, training), training, 4096, hardware(), Target(format="ddp")).device
    plain_training = replace(training, code=Code())
    plain = account(
        decided, shapes_of(LLAMA_2_7B, training), plain_training, 4096, hardware(), Target(format="ddp")
    ).device
    assert device.reserved < plain.reserved
    assert device.allocated == plain.allocated
