"""Documents that nobody should write, through every reader of the linter: no crash, no hang, bounded memory.

The everyday tier takes 2,000, another stretch with every commit; the full tier the first 100,000.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from console import ROOT, environment
from hostile_documents import ENTRIES, seeds
from hostile_lint import SLOW
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsgen.lint.kinds import KINDS, kind_of
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target

HERE = Path(__file__).parent
MOST_RESIDENT = 80
"""MiB of a whole process that met three files of 50 MB."""
EVERYDAY, FULL, CHUNK = 2_000, 100_000, 4_000
MOST_GROWN = 300
"""MiB that a process may grow over thousands of documents: YAML's anchors may stand for 100,000 values."""


def ran(start: int, count: int) -> Any:
    done = subprocess.run(
        [sys.executable, str(HERE / "hostile_lint.py"), str(start), str(count)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env=environment() | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, f"a reader took the process along: {done.returncode}\n{done.stderr[-2000:]}"
    return json.loads(done.stdout)


def check(start: int, count: int) -> None:
    said = ran(start, count)
    assert said["crashed"] == []
    assert said["slow"] == [], f"more than {SLOW} s of processor time: number, reader, seconds"
    assert said["grown_mib"] < MOST_GROWN
    assert sum(said["outcomes"].values()) == count
    assert {outcome.split()[0] for outcome in said["outcomes"]} == set(ENTRIES)


def test_a_stretch_that_changes_with_the_commit() -> None:
    found = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=30, check=False
    )
    turn = int(found.stdout[:8], 16) if found.returncode == 0 else int(time.time()) // 86400
    # Beyond those of the full tier: what it has seen need not be seen again.
    check(FULL + turn, EVERYDAY)


@pytest.mark.full
@pytest.mark.parametrize("start", range(0, FULL, CHUNK))
def test_a_hundred_thousand(start: int) -> None:
    check(start, CHUNK)


def test_every_reader_has_something_to_start_from() -> None:
    assert seeds().keys() == set(ENTRIES)
    assert all(seeds().values())


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_KEYS = st.sampled_from(["zero_optimization", "stage", "fp16", "optimizer", "params", "enabled"]) | st.text(max_size=9)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5))
_ANYWAY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_ANYWAY
@given(config=st.dictionaries(_KEYS, _VALUES, max_size=6), version=st.sampled_from(["0.14.0", "0.17.1", "0.19.8"]))
def test_any_values(config: Any, version: str) -> None:
    data = json.dumps(config).encode("utf-8", "surrogatepass")
    findings = lint_bytes("x.json", data, KINDS[0], make_target(version, "deepspeed", 8))
    assert all(finding.range.line >= 1 and finding.range[:2] <= finding.range[2:] for finding in findings)


@_ANYWAY
@given(data=st.binary(max_size=200), suffix=st.sampled_from([".json", ".hjson", ".yaml", ".py"]))
def test_any_bytes(data: bytes, suffix: str) -> None:
    kind = kind_of(f"x{suffix}")
    assert kind is not None
    for loader in ("deepspeed", "transformers"):
        lint_bytes(f"x{suffix}", data, kind, make_target(loaded_by=loader))  # type: ignore[arg-type]


LARGE = {
    "numbers": (b"[" + b"1," * 130_000, ".json"),
    "keys": (b"{" + b",".join(b'"%d":1' % number for number in range(20_000)) + b"}", ".json"),
    "objects": (b'{"a":1,' * 36_000, ".json"),
    "one key again and again": (b"{" + b'"stage": 1,' * 23_000 + b"}", ".hjson"),
    "text without an end": (b'"' + b"x" * 260_000, ".json"),
    "backslashes": (b'"' + b"\\" * 260_000, ".hjson"),
    "comments that open": (b"/*" * 130_000, ".hjson"),
    "line ends": (b"\n" * 260_000 + b"}", ".json"),
    "blanks": (b"{" + b" " * 260_000, ".hjson"),
    "ever deeper": (b"[" * 260_000, ".json"),
    "ever deeper, closed": (b"[" * 130_000 + b"]" * 130_000, ".hjson"),
    "YAML items": (b"- a\n" * 60_000, ".yaml"),
    "YAML anchors": (b"a: &a [x]\n" + b"b: *a\n" * 20_000, ".yaml"),
    "code": (b"x = 1\n" * 20_000, ".py"),
    "a sum": (b"x = " + b"1+" * 3_000 + b"1\n", ".py"),
}


@pytest.mark.parametrize(("data", "suffix"), LARGE.values(), ids=LARGE)
def test_what_is_as_large_as_it_may_be(data: bytes, suffix: str) -> None:
    kind = kind_of(f"x{suffix}")
    assert kind is not None
    begin = time.process_time()
    lint_bytes(f"x{suffix}", data, kind, make_target(loaded_by="deepspeed"))
    took = time.process_time() - begin
    # Processor time stretches where a core is shared or slow, for both alike: adding up ten million numbers takes some
    # half second where a document may take two.
    begin = time.process_time()
    sum(number * number for number in range(10_000_000))
    assert took < 4 * (time.process_time() - begin)


def test_fifty_megabytes_are_not_read(tmp_path: Path) -> None:
    for name in ("ds_config.json", "accelerate.yaml", "train.py"):
        with open(tmp_path / name, "wb") as file:
            for _ in range(50):
                file.write(b'{"zero_optimization": {"stage": 1}},\n'.ljust(1024) * 1024)
    # The peak of this very program: getrusage would count that of the process that started it, too.
    code = (
        "import re, sys; from dsgen.cli import main; code = main(sys.argv[1:]); "
        "peak = re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1]; "
        "print(int(peak) // 1024, file=sys.stderr); sys.exit(code)"
    )
    names = ["ds_config.json", "accelerate.yaml", "train.py"]
    done = subprocess.run(
        [sys.executable, "-c", code, "lint", *names, "--format", "concise"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert done.stdout.count("larger than") == len(names), done.stdout
    assert int(done.stderr.split()[-1]) < MOST_RESIDENT
