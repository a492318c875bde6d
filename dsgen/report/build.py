"""What ``build`` says beside the files: where they are, what they cannot say, and why each key is what it is."""

import json
from collections.abc import Sequence
from pathlib import Path

from dsgen.formats.values import NotCarried, Written


def build_text(written: Written, paths: Sequence[Path], *, explain: bool) -> str:
    """For a person: files, then what to pass elsewhere, then the reasons if asked for."""
    lines = [f"wrote {path}" for path in paths]
    done = " (train.py does)" if "train.py" in written.files else ""
    flags = [item for item in written.not_carried if item.pass_as.startswith("--")]
    others = [item for item in written.not_carried if item not in flags]
    if flags:
        lines += [
            "",
            f"The config needs these arguments beside it{done}:",
            f"  {' '.join(item.pass_as for item in flags)}",
        ]
    if others:
        lines += ["", f"{_subject(written)} can't say this; say it where it belongs{done}:"]
        for item in others:
            lines += [f"  {item.key} {_short(item.value)}: {item.why}", f"    {item.pass_as}"]
    if explain:
        lines += ["", *explanation(written)]
    return "".join(f"{line}\n" for line in lines).lstrip("\n")


def _subject(written: Written) -> str:
    main = next(iter(written.files))
    return "The config" if main.endswith(".json") else main


def explanation(written: Written) -> list[str]:
    """Key, value, reason, in three columns."""
    rows = [(reason.key, _short(reason.value), reason.why) for reason in written.reasons]
    keys, values = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    return [f"{key:{keys}}  {value:{values}}  {why}" for key, value, why in rows]


def build_json(written: Written, paths: Sequence[Path], *, explain: bool) -> str:
    """One object. ``text`` is given where nothing was written to disk, ``reasons`` where they were asked for."""
    files = [{"path": str(path), "text": None} for path in paths]
    answer = {
        "version": 1,
        "files": files or [{"path": name, "text": text} for name, text in written.files.items()],
        "not_carried": [_not_carried(item) for item in written.not_carried],
        "reasons": [{"key": r.key, "value": r.value, "why": r.why} for r in written.reasons] if explain else None,
    }
    return json.dumps(answer, indent=2) + "\n"


def _not_carried(item: NotCarried) -> dict[str, object]:
    return {"key": item.key, "value": item.value, "pass_as": item.pass_as, "why": item.why}


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
