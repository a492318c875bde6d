"""The key that was meant: right names near a wrong one."""

import re
from collections.abc import Iterable
from functools import lru_cache

# From this likeness on (or from _PART, where letters are only left out) a wrong key is taken for a slip of the pen, for
# which the writer would want to be stopped.
_SLIP = 0.9
_PART = 0.8
_RESEMBLES = 0.6
_WORD = 4
"""Letters of the shortest word of which one wrong letter leaves no doubt: type."""

COMMENT = r"^(?:[_#$]|//)|^(?:comment|note|description)s?$"
"""Keys by which people leave notes in JSON, as a pattern that JSON Schema takes as well."""


def closest(name: str, known: Iterable[str]) -> tuple[str, bool] | None:
    """The known name most like ``name``, and whether the likeness is beyond doubt; None if nothing resembles it."""
    from difflib import SequenceMatcher  # late: most files hold no unknown key

    plain = _plain(name)
    matcher = SequenceMatcher(None, "", plain)
    best, likeness = None, 0.0
    for candidate in known:
        other = _plain(candidate)
        if plain == other:
            return candidate, True
        matcher.set_seq1(other)
        # The quick ratios are upper bounds: they spare the real one for all but a few names.
        floor = max(likeness, _RESEMBLES)
        if matcher.real_quick_ratio() > floor and matcher.quick_ratio() > floor and matcher.ratio() > floor:
            best, likeness = candidate, matcher.ratio()
    if best is None:
        return None
    other = _plain(best)
    slip = (likeness >= _SLIP and abs(len(plain) - len(other)) <= 2) or _is_one_off(plain, other)
    return best, slip or (likeness >= _PART and plain in other)


def _is_one_off(wrong: str, right: str) -> bool:
    """Whether one letter is left out, added or another one, in a word long enough for that to be no other word."""
    if len(right) < _WORD or abs(len(wrong) - len(right)) > 1:
        return False
    shorter, longer = sorted((wrong, right), key=len)
    at = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return longer[at + 1 :] == shorter[at + (len(longer) == len(shorter)) :]


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    """Letters and digits only, British spelling folded."""
    letters = "".join(char for char in name.lower() if char.isalnum())
    return letters.replace("isation", "ization").replace("ise", "ize")


def is_comment(key: str) -> bool:
    """Whether a key is one by which people leave notes in JSON."""
    return re.search(COMMENT, key) is not None
