"""How long the sequences of a run really are, where its samples have lengths of their own and the row gives the
longest.

Symbols: m mean length of the samples, s longest that is kept, b samples of a micro-batch, all padded to its longest.
"""

import re
from math import exp

from dsgen.score.runs import Run

_MEAN = re.compile(r"mean (\d+) tokens")
_ALPACA = 115
"""Mean tokens of Alpaca's 52,002 samples with prompt, by Llama-2's tokenizer: some 520 characters each."""
_POINTS = 200


def padded_length(run: Run) -> float:
    """Expected tokens of a padded sample: the row's sequence length where nothing says that samples vary.

    Lengths are taken to be exponential of mean m, without those above s: F(x) = (1 - e^(-x/m)) / (1 - e^(-s/m)). Of b
    samples the longest has F^b, so its mean is s less the integral of F^b from 0 to s (midpoint rule).
    """
    longest = run.counts["seq_len"] or 1
    mean = mean_length(run)
    if mean is None:
        return longest
    batch = run.counts["micro_batch"] or 1
    step = longest / _POINTS
    kept = 1 - exp(-longest / mean)
    below = sum(((1 - exp(-(point + 0.5) * step / mean)) / kept) ** batch for point in range(_POINTS))
    return longest - step * below


def mean_length(run: Run) -> float | None:
    """Tokens of a sample on average; None where nothing says that they vary."""
    notes = run.texts["notes"]
    stated = _MEAN.search(notes)
    if stated:
        return float(stated[1])
    return _ALPACA if "alpaca" in notes else None
