"""``dsgen plan --pin``: writes the decision into the spec."""

import sys
from pathlib import Path

from dsgen.cli.output import replace_file
from dsgen.errors import DsgenError, InputError, Place
from dsgen.planner.job import Job, decide_spec
from dsgen.planner.pin import with_pins
from dsgen.signals import end_on_signals
from dsgen.spec.read import spec_of
from dsgen.spec.source import STDIN, Source


def pin(job: Job, source: Source, path: str) -> None:
    """Edits the file at ``path`` in place, atomically, after making sure that it then says just this plan."""
    if path == STDIN:
        raise InputError.at("--pin writes into a file, and standard input is none")
    file = Path(path)
    data = file.read_bytes()
    text = with_pins(source.text, job, path)
    if text == source.text:
        sys.stderr.write(f"{path} holds this plan already\n")
        return
    again = decide_spec(spec_of(Source(text, source.file, source.folder)))
    if again.decision.chosen.plan != job.decision.chosen.plan or with_pins(text, again, path) != text:
        raise DsgenError.at("the plan can't be pinned: read back, the spec says another", Place(path))
    with end_on_signals():
        replace_file(file, _as_it_was(data, text))
    sys.stderr.write(f"pinned the plan in {path}\n")


def _as_it_was(data: bytes, text: str) -> bytes:
    """With a byte order mark where there was one."""
    mark = b"\xef\xbb\xbf"
    return (mark if data.startswith(mark) else b"") + text.encode("utf-8")
