"""What ``dsgen lint`` prints and writes."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import IO

from dsgen.errors import InputError, Place
from dsgen.lint.check import Checked, Request, settings_for
from dsgen.lint.finding import RANK
from dsgen.report.lint_view import LintView

# form of the output -> module of dsgen.report that makes it
FORMS = {
    "text": "lint_text",
    "concise": "lint_concise",
    "json": "lint_json",
    "jsonl": "lint_json",
    "sarif": "lint_sarif",
    "github": "lint_github",
    "gitlab": "lint_gitlab",
    "junit": "lint_junit",
}


def print_findings(form: str, checked: Sequence[Checked], *, fixing: bool) -> None:
    """Prints what was found. Where fixed text went to standard output, the findings go to standard error."""
    stream = sys.stderr if fixing and any(done.source.is_stdin for done in checked) else sys.stdout
    view = _view(checked, stream, fixing=fixing)
    printed = getattr(import_module(f"dsgen.report.{FORMS[form]}"), f"lint_{form}")(view)
    if printed:
        print(printed, file=stream)


def print_statistics(form: str, checked: Sequence[Checked]) -> None:
    """Prints how often each rule found something."""
    from dsgen.report import lint_statistics

    made = lint_statistics.statistics_json if form == "json" else lint_statistics.statistics_text
    print(made(_view(checked, sys.stdout, fixing=False)))


def _view(checked: Sequence[Checked], stream: IO[str], *, fixing: bool) -> LintView:
    return LintView(
        files=[done.source.name for done in checked],
        findings=[finding for done in checked for finding in done.findings],
        texts={done.source.name: done.text for done in checked if done.findings},
        fixed=sum(done.fixed for done in checked) if fixing else None,
        colour=_shows_colours(stream),
    )


def _shows_colours(stream: IO[str]) -> bool:
    # https://no-color.org: any value but an empty one means no.
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_diff(checked: Sequence[Checked]) -> int:
    """Prints what fixes would change, in the form that ``patch`` and ``git apply`` take; 1 where they would.

    How much is not cured by that is said beside it: an exit code of 1 is never left unexplained.
    """
    from difflib import unified_diff

    for done in checked:
        if done.fixed:
            name = Path(done.source.name).as_posix()
            encoding = done.source.kind.encoding(done.data)
            before, after = (data.decode(encoding).splitlines(True) for data in (done.source.data, done.data))
            for line in unified_diff(before, after, f"a/{name}", f"b/{name}"):
                sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    left = sum(len(done.findings) for done in checked)
    if left:
        many = "1 finding is" if left == 1 else f"{left} findings are"
        print(f"{many} left as found; dsgen lint without --diff says what", file=sys.stderr)
    return int(any(done.fixed for done in checked))


def write_fixed(done: Checked) -> None:
    """Writes a cured file where it came from; what came by standard input goes on, cured or not."""
    if done.source.is_stdin:
        sys.stdout.buffer.write(done.data)
    elif done.fixed:
        from dsgen.cli.output import replace_file

        replace_file(Path(done.source.name), done.data)


def write_baseline(path: Path, checked: Sequence[Checked]) -> int:
    """Writes what was found to a baseline; never over a file that was linted, which a slip of the shell may name."""
    from dsgen.cli.output import replace_file
    from dsgen.lint.baseline import baseline_text, is_baseline

    linted = {os.path.realpath(done.source.name) for done in checked if not done.source.is_stdin}
    if os.path.realpath(path) in linted and not is_baseline(path):
        raise InputError.at("was linted itself: a baseline would replace it", Place(str(path)), "name another file")
    findings = [finding for done in checked for finding in done.findings]
    texts = {done.source.name: done.text for done in checked}
    replace_file(path, baseline_text(path, findings, texts).encode())
    print(f"wrote {path}: {len(findings)} known")
    return 0


def new_ones(checked: Sequence[Checked], path: Path | None, request: Request) -> list[Checked]:
    """Without the findings that a baseline knows: the named one, or that of each file's own project."""
    paths = [path or settings_for(done.source.name, request).baseline for done in checked]
    if not any(paths):
        return list(checked)
    from dsgen.lint.baseline import read_baseline

    known = {one: read_baseline(one) for one in set(paths) if one}
    shown = [
        replace(done, findings=known[one].new(done.findings, done.text)) if one else done
        for done, one in zip(checked, paths, strict=True)
    ]
    for one, baseline in known.items():
        stale = baseline.stale(done.source.name for done in checked)
        if stale:
            gone = "1 known finding is" if stale == 1 else f"{stale} known findings are"
            print(f"{one}: {gone} gone; write it anew with --write-baseline", file=sys.stderr)
    return shown


def exit_code(checked: Iterable[Checked], fail_on: str) -> int:
    """1 where something at or above the bound is left."""
    bound = RANK.get(fail_on, len(RANK))
    return int(any(RANK[finding.severity] >= bound for done in checked for finding in done.findings))
