"""Why a run can't be predicted."""


class SkippedError(Exception):
    """The reason, in words for the user; it costs one row, not the file."""
