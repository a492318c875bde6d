"""Numbers far beyond anything that exists: refused by their bound, and at the bound answered soon."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsgen.cli import main
from dsgen.spec.schema import alternatives, flat, is_supported, scalar_type, spec_schema

BASE = {
    "model": {"layers": "2", "hidden": "64", "vocab": "100"},
    "hardware": {"gpu": "a100-80gb-sxm", "gpus_per_node": "2", "nodes": "2"},
    "target": {"format": "deepspeed"},
}
# What else a key needs to stand there.
BESIDE = {
    "warmup_steps": {"total_steps": "2147483647"},
    "rank": {"type": "lora"},
    "parameters": {"layers": None, "hidden": None, "vocab": None},
    "shard_group": {},
}
MOST_SECONDS = 20.0
"""For plan and build together; a plan takes a tenth of one."""


def _integers(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every whole number that a spec may hold, with its schema."""
    schema = flat(schema)
    if not is_supported(schema):
        return
    if scalar_type(schema) in ("integer", "count") and "enum" not in schema and "anyOf" not in schema:
        yield path, schema
    for key, below in schema.get("properties", {}).items():
        yield from _integers(below, (*path, key))
    for form in alternatives(schema):
        yield from _integers(form, path)


INTEGERS = {".".join(path): schema for path, schema in _integers(spec_schema())}


def _bound(schema: Any) -> int:
    return int(schema.get("maximum", schema.get("x-dsgen", {}).get("supported", {}).get("maximum", 0)))


def test_every_whole_number_has_a_bound() -> None:
    assert len(INTEGERS) > 25  # the walk found them
    assert [name for name, schema in INTEGERS.items() if not _bound(schema)] == []


def _spec(name: str, value: int) -> dict[str, Any]:
    spec: dict[str, Any] = {key: dict(inner) for key, inner in BASE.items()}
    *above, key = name.split(".")
    section = spec
    for step in above:
        section = section.setdefault(step, {})
    beside = {other: given for other, given in BESIDE.get(key, {}).items() if given is not None}
    for other in BESIDE.get(key, {}).keys() - beside.keys():
        section.pop(other, None)
    section |= beside | {key: str(value)}
    if key == "parameters":
        # Where it does not fit, some fifty changes are tried on thousands of layers: long, but an answer.
        spec["hardware"] |= {"gpus_per_node": "8", "nodes": "1000"}
    if key == "shard_group":
        spec["target"] = {"format": "fsdp2"}
    return spec


def _run(command: list[str], spec: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    import yaml

    Path("spec.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    return main(command), capsys.readouterr().err


@pytest.mark.parametrize("name", INTEGERS)
def test_at_its_bound_it_is_answered_and_beyond_it_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    most = _bound(INTEGERS[name])
    started = time.process_time()
    for command in (["plan", "spec.yaml"], ["build", "spec.yaml", "-o", "out/"]):
        code, err = _run(command, _spec(name, most), capsys)
        assert code in (0, 1, 2)
        assert f"{name} must be" not in err
    assert time.process_time() - started < MOST_SECONDS
    code, err = _run(["plan", "spec.yaml"], _spec(name, most + 1), capsys)
    assert code == 2
    assert name.rpartition(".")[2] in err
