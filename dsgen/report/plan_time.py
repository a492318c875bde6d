"""The step time in words: seconds by part, what is trained in that time, and how well the GPU is used."""

from collections.abc import Iterator

from dsgen.planner.refusal import speed_words
from dsgen.steptime.values import TIME_PARTS, StepTime, TimePart

_WORDS: dict[TimePart, str] = {
    "communication": "communication that nothing hides",
    "offload": "offload traffic that nothing hides",
    "bubble": "pipeline bubble",
    "launch": "waiting for launches",
}


def time_lines(time: StepTime) -> Iterator[str]:
    """The sum with its band, then the parts that take time, then the speed."""
    total = time.seconds
    yield f"{seconds_words(total)} expected, {seconds_words(time.low)} to {seconds_words(time.high)}"
    shares = [
        f"{_WORDS.get(part, part)} {seconds_words(time.parts[part])} ({time.parts[part] / total * 100:.0f} %)"
        for part in TIME_PARTS
        if time.parts.get(part, 0.0) > 0
    ]
    yield ", ".join(shares)
    mfu = "MFU unknown: the GPU's peak is not stated" if time.mfu is None else f"MFU {time.mfu * 100:.0f} %"
    yield f"{speed_words(time.tokens_per_second_per_gpu)}, {mfu}"
    yield from time.notes


def seconds_words(seconds: float) -> str:
    """Three significant digits: 850 ms, 2.31 s, 74.0 s."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
