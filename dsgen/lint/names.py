"""The key that was meant: right names near a wrong one."""

from collections.abc import Iterable

# From this likeness on (or from _PART, where letters are only left out) a wrong key is taken for a slip of the pen, for
# which the writer would want to be stopped.
_SLIP = 0.9
_PART = 0.8
_RESEMBLES = 0.6
_NOTES = ("comment", "comments", "note", "notes", "description")


def closest(name: str, known: Iterable[str]) -> tuple[str, bool] | None:
    """The known name most like ``name``, and whether the likeness is beyond doubt; None if nothing resembles it."""
    from difflib import SequenceMatcher  # late: most files hold no unknown key

    plain = _plain(name)
    best, likeness = None, 0.0
    for candidate in known:
        other = _plain(candidate)
        if plain == other:
            return candidate, True
        ratio = SequenceMatcher(None, plain, other).ratio()
        if ratio > likeness:
            best, likeness = candidate, ratio
    if best is None or likeness < _RESEMBLES:
        return None
    other = _plain(best)
    slip = likeness >= _SLIP and abs(len(plain) - len(other)) <= 2
    return best, slip or (likeness >= _PART and plain in other)


def _plain(name: str) -> str:
    """Letters and digits only, British spelling folded."""
    letters = "".join(char for char in name.lower() if char.isalnum())
    return letters.replace("isation", "ization").replace("ise", "ize")


def is_comment(key: str) -> bool:
    """Keys by which people leave notes in JSON."""
    return key.startswith(("_", "//", "#", "$")) or key.lower() in (
        "comment",
        "comments",
        "note",
        "notes",
        "description",
    )
