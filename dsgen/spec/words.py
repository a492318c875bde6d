"""How values, names and alternatives are worded in messages: one line each, bounded, nothing unprintable."""

from collections.abc import Iterable, Sequence


def shown(text: str, quote: str = "'", longest: int = 60) -> str:
    """A user's text in a message: quoted, cut, unprintable characters escaped."""
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return f"{quote}{safe}{quote}"


def dotted(path: Sequence[str | int]) -> str:
    """``training.optimizer.betas[0]``."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += ("." if name else "") + shown(step, quote="")
    return name


def listed(words: Iterable[object], last: str = "or") -> str:
    """``a, b or c``."""
    *head, tail = [str(word) for word in words]
    return f"{', '.join(head)} {last} {tail}" if head else tail
