"""A linear layer's tensors: weight (out, in), as torch.nn.Linear stores it, and maybe a bias (out)."""

from collections.abc import Iterator

from dsgen.shapes.values import Tensor


def linear(name: str, out: int, width: int, *, bias: bool = False) -> Iterator[Tensor]:
    """``name.weight`` and, if asked for, ``name.bias``."""
    yield Tensor(f"{name}.weight", (out, width))
    if bias:
        yield Tensor(f"{name}.bias", (out,))
