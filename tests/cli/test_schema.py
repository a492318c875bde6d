"""``dsgen schema``: what editors get."""

import json
from typing import Any

import jsonschema
import pytest

from dsgen.cli import main
from dsgen.data import schema_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["schema", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_deepspeed_schema_of_a_version(capsys: pytest.CaptureFixture[str]) -> None:
    schema = printed(capsys, "deepspeed", "--deepspeed", "0.16.4")
    jsonschema.Draft202012Validator.check_schema(schema)
    # DeepSpeed 0.19.3 switched clipping on by default (PR 8068), 0.19.8 removed amp.
    assert schema["properties"]["gradient_clipping"]["default"] == 0.0
    assert "amp" in schema["properties"]
    assert all(key.get("description") for key in schema["properties"].values())


def test_an_unknown_key_is_refused_where_deepspeed_ignores_it(capsys: pytest.CaptureFixture[str]) -> None:
    validator = jsonschema.Draft202012Validator(printed(capsys, "deepspeed"))
    assert validator.is_valid({"train_batch_size": 8, "zero_optimization": {"stage": 2}})
    assert not validator.is_valid({"train_batch_size": 8, "zero_optimisation": {"stage": 2}})


def test_the_schema_of_spec_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "spec") == json.loads(schema_path("spec").read_text("utf-8"))


@pytest.mark.parametrize("version", ["0.9.5", "0.20.0", "newest", "torch==2.6"])
def test_a_version_that_is_not_known(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "deepspeed", "--deepspeed", version]) == 2
    assert version.rpartition("==")[2] in capsys.readouterr().err


def test_a_spec_has_no_deepspeed_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "spec", "--deepspeed", "0.19.8"]) == 2
    assert "leave --deepspeed out" in capsys.readouterr().err
