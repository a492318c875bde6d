"""The schema says of the installed DeepSpeed what that says of itself: keys, defaults, bounds, removed keys."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsgen.facts.versions import libraries, version_key
from dsgen.lint import schema as sch

FIELDS = Path(__file__).with_name("deepspeed_fields.py")
EXECUTED = version_key(libraries()["deepspeed"].executed)


@pytest.fixture(scope="module")
def installed() -> Any:
    environment = {**os.environ, "DS_ACCELERATOR": "cpu"}
    ran = subprocess.run(
        [sys.executable, str(FIELDS)], capture_output=True, text=True, timeout=300, check=True, env=environment
    )
    return json.loads(ran.stdout)


def section(path: str) -> Any:
    schema: Any = sch.deepspeed_schema()
    for key in path.split("."):
        schema = schema["properties"][key]
    return schema


def living(schema: Any) -> dict[str, Any]:
    """Keys that the installed version reads, with their keywords for it."""
    return {
        key: sch.keywords(inner, EXECUTED) for key, inner in schema["properties"].items() if sch.exists(inner, EXECUTED)
    }


def test_every_key_with_its_default_and_bounds(installed: Any) -> None:
    for path, fields in installed["sections"].items():
        ours = living(section(path))
        assert ours.keys() == fields.keys(), path
        for key, field in fields.items():
            bounds = {word: ours[key][word] for word in field["bounds"] if word in ours[key]}
            assert bounds == field["bounds"], f"{path}.{key}"
            if field["default"] is not None:
                assert ours[key].get("default") == field["default"], f"{path}.{key}"


def test_every_parameter_of_the_schedules(installed: Any) -> None:
    cases = sch.facts(section("scheduler"))["variants"]["cases"]
    assert cases.keys() == installed["schedules"].keys()
    for name, parameters in installed["schedules"].items():
        schema = sch.resolve(cases[name])
        ours = living(schema)
        assert ours.keys() == parameters.keys(), name
        required = {key for key, default in parameters.items() if default == "required"}
        assert required - {"cycle_min_lr", "cycle_max_lr", "total_num_steps"} == set()
        assert set(schema.get("required", ())) == required, name
        for key in parameters.keys() - required:
            assert ours[key].get("default") == parameters[key], f"{name}.{key}"


def test_every_parameter_of_the_optimizers(installed: Any) -> None:
    cases = sch.facts(section("optimizer"))["variants"]["cases"]
    assert set(installed["names"]) <= cases.keys()
    for name, classes in installed["optimizers"].items():
        ours = living(sch.resolve(cases[name]))
        for parameters in classes:
            assert parameters.keys() <= ours.keys(), name


def test_what_is_removed_is_marked_so(installed: Any) -> None:
    for path, removed in (("", installed["removed"]), ("zero_optimization", installed["removed_zero"])):
        schema = section(path) if path else sch.deepspeed_schema()
        marked = {
            key
            for key, inner in schema["properties"].items()
            if sch.facts(inner).get("then") == "refused" and not sch.exists(inner, EXECUTED)
        }
        assert marked == set(removed)


def test_the_newest_version_is_the_table_s() -> None:
    assert version_key(sch.newest()) >= EXECUTED
    assert sch.newest() == libraries()["deepspeed"].newest
