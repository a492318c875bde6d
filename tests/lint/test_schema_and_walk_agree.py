"""The walk and jsonschema on the derived plain schema find the same places, version by version."""

import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema
import pytest
from deepspeed_configs import mutated, real_values

from dsgen.lint import versions
from dsgen.lint.plain_schema import plain_schema
from dsgen.lint.schema import deepspeed_schema
from dsgen.lint.schema_walk import walk
from dsgen.lint.target import make_target

VERSIONS = ["0.14.0", "0.15.4", "0.16.9", "0.17.6", "0.18.9", "0.19.5", "0.19.8"]
# What a plain schema cannot say: it holds for values that are right as they stand.
BEYOND_A_SCHEMA = {"dead-key", "key-given-twice", "old-key", "key-removed-later", "whole-number-with-a-point"}


def found_by_walk(config: dict[str, Any], version: str) -> set[tuple[Any, ...]]:
    target = make_target(version)
    return {slip.mark.where for slip in walk(config, target) if slip.kind not in BEYOND_A_SCHEMA}


def flat(errors: Iterable[Any]) -> Iterator[Any]:
    """Of "this schema or the word auto" what the schema says, where the value is of its type."""
    for error in errors:
        inner = [cause for cause in error.context or () if cause.schema_path[0] == 0 and len(cause.path) > 0]
        yield from inner if error.validator == "anyOf" and inner else [error]


def found_by_jsonschema(config: dict[str, Any], validator: Any) -> set[tuple[Any, ...]]:
    places = set()
    for error in flat(validator.iter_errors(config)):
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            patterns = error.schema.get("patternProperties", {})
            extras = [
                key
                for key in error.instance
                if key not in error.schema["properties"] and not any(re.search(pattern, key) for pattern in patterns)
            ]
            places |= {(*path, key) for key in extras}
        else:
            places.add(path)
    return places


@pytest.fixture(scope="module", params=VERSIONS)
def validator(request: pytest.FixtureRequest) -> Any:
    schema = plain_schema(versions.parse(request.param))
    jsonschema.Draft202012Validator.check_schema(schema)
    made = jsonschema.Draft202012Validator(schema)
    return request.param, made


def test_the_schema_of_all_versions_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(deepspeed_schema())


def test_both_find_the_same_places(validator: Any) -> None:
    version, made = validator
    rng = random.Random(version)
    configs = list(real_values())
    configs += [mutated(rng.choice(configs), rng) for _ in range(150)]
    configs += [mutated(config, rng) for config in configs[-150:]]
    for config in configs:
        assert found_by_walk(config, version) == found_by_jsonschema(config, made), config


def test_plain_schemas_hold_nothing_of_ours() -> None:
    assert "x-dsgen" not in repr(plain_schema((0, 19, 8)))
    assert "$ref" not in repr(plain_schema((0, 19, 8)))


def test_versions_differ_where_they_should() -> None:
    old, new = plain_schema((0, 16, 4)), plain_schema((0, 19, 8))
    assert "amp" in old["properties"]
    assert "amp" not in new["properties"]
    assert old["properties"]["gradient_clipping"]["default"] == 0
    assert new["properties"]["gradient_clipping"]["default"] == 1
    zero = old["properties"]["zero_optimization"]["properties"]["reduce_bucket_size"]["anyOf"][0]
    assert zero["minimum"] == 0
    assert "exclusiveMinimum" not in zero
