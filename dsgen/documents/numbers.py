"""Numbers as both dialects turn them into values."""

from dsgen.documents.document import LibraryFailure


def whole(digits: str, start: int) -> int:
    """The whole number; a clear problem where it has more digits than Python converts."""
    try:
        return int(digits)
    except ValueError:
        message = f"this number has {len(digits)} digits: Python refuses to read it"
        raise LibraryFailure(message, start, start + len(digits)) from None
