"""Which calibration the figures of an output rest on."""

from typing import Any

from dsgen.facts.calibration import current


def calibration_words() -> str | None:
    """One clause; None where the stated constants are used."""
    used = current()
    return None if used is None else used.words


def calibration_fields() -> dict[str, Any] | None:
    """For JSON: the file, the runs that it was made from, and its constants (sizes in bytes)."""
    used = current()
    if used is None:
        return None
    return {
        "file": used.file,
        "source": {"file": used.source, "sha256": used.sha256, "rows": used.runs},
        "constants": {name: {"value": value, "rows": used.rows[name]} for name, value in used.values.items()},
    }
