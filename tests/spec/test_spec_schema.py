"""The schema of a spec: valid, described, and at one with what reads by it."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from dsgen.errors import InputError
from dsgen.plan import Wishes
from dsgen.spec import wording
from dsgen.spec.read import read_spec, spec_from_mapping
from dsgen.spec.scalars import PARSERS
from dsgen.spec.schema import flat, homes, spec_schema
from dsgen.spec.values import (
    GpuNumbers,
    HardwareSpec,
    Interconnect,
    Method,
    ModelSizes,
    NvmeSpec,
    Optimizer,
    Scheduler,
    Spec,
    TargetSpec,
    Training,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/spec.yaml"))
DEFS = spec_schema()["$defs"]


def every_schema(schema: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each subschema with its place in the file; examples and defaults are values, not schemas."""
    if isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            if key in {"properties", "$defs"}:
                for name, inner in value.items():
                    yield from every_schema(inner, f"{path}/{key}/{name}")
            elif key not in {"examples", "default", "x-dsgen"}:
                yield from every_schema(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for at, inner in enumerate(schema):
            yield from every_schema(inner, f"{path}/{at}")


PROPERTIES = [
    (f"{path}/{name}", schema)
    for path, parent in every_schema(spec_schema())
    for name, schema in parent.get("properties", {}).items()
]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(spec_schema())
    assert len(PROPERTIES) > 80


@pytest.mark.parametrize(("path", "schema"), PROPERTIES, ids=[path for path, _ in PROPERTIES])
def test_every_property_is_described_by_word_and_example(path: str, schema: dict[str, Any]) -> None:
    merged = flat(schema)
    assert len(merged["description"]) > 10
    assert merged["description"].endswith(".")
    validator = Draft202012Validator({**merged, "$defs": DEFS})
    for example in merged["examples"]:
        validator.validate(example)
    if "default" in merged:
        validator.validate(merged["default"])
    if "supported" in merged.get("x-dsgen", {}):
        assert "not supported yet" in merged["description"].lower()


def test_every_mapping_is_closed_but_the_launchers_own_settings() -> None:
    open_ones = [
        path
        for path, schema in every_schema(spec_schema())
        if "properties" in schema and schema.get("additionalProperties") is not False
    ]
    assert open_ones == ["#/$defs/other_optimizer"]  # unsupported as a whole, whatever its settings


def test_every_keyword_and_type_that_the_schema_uses_is_understood() -> None:
    keywords = {key for _, schema in every_schema(spec_schema()) for key in schema}
    annotations = {"$schema", "$id", "$ref", "$defs", "$comment", "title", "description", "examples", "default"}
    assert keywords - annotations - {"properties", "items"} == set(wording.WORDED) & keywords
    assert set(wording.WORDED) <= keywords | {"minLength"}
    types = {schema.get("x-dsgen", {}).get("type") for _, schema in every_schema(spec_schema())} - {None}
    assert types <= set(PARSERS)


@pytest.mark.parametrize(
    ("kind", "texts", "others"),
    [
        (
            "bytes",
            ["80GiB", "80 GB", "1.5TiB", "1_024MiB", "80gb", "5e9", "123456789"],
            ["80G", "GiB", "80 GiB of it", "-1GB"],
        ),
        ("count", ["7B", "350M", "70e9", "8,030,261,248", "1.5T", "12"], ["7X", "7BB", "seven"]),
        ("integer", ["8", "1_000", "1e4", "+8", "-8"], ["eight", "8B", "1:30"]),
        ("number", ["2e-5", ".5", "-1", "1_000.5"], ["1:30", "0x10", "nan", "2e-5s"]),
    ],
)
def test_an_editor_takes_the_quantities_that_are_read_here(kind: str, texts: list[str], others: list[str]) -> None:
    editor = Draft202012Validator(DEFS[kind])
    for text in texts:
        PARSERS[kind](text)
        assert editor.is_valid(text), text
    for text in others:
        assert not editor.is_valid(text), text
        with pytest.raises(ValueError, match=r"."):
            PARSERS[kind](text)


def defaults(definition: str) -> dict[str, Any]:
    """Of every property that states one."""
    properties = flat({"$ref": f"#/$defs/{definition}"})["properties"]
    found = {name: flat(schema).get("default", ...) for name, schema in properties.items()}
    return {name: value for name, value in found.items() if value is not ...}


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("hardware", HardwareSpec(gpu="h100")),
        ("training", Training()),
        ("adam", Optimizer()),
        ("sgd", Optimizer(type="sgd")),
        ("falling_scheduler", Scheduler()),
        ("constant_scheduler", Scheduler(type="constant")),
        ("full_method", Method()),
        ("lora_method", Method(type="lora")),
        ("target", TargetSpec()),
    ],
)
def test_defaults_are_those_of_the_values(definition: str, value: Any) -> None:
    stated = defaults(definition)
    assert stated
    for name, default in stated.items():
        actual = getattr(value, name)
        assert default == (list(actual) if isinstance(actual, tuple) else actual), name


@pytest.mark.parametrize(
    ("definitions", "kind", "left_out"),
    [
        (["model_sizes"], ModelSizes, {"factory"}),
        (["hardware"], HardwareSpec, set()),
        (["gpu_numbers"], GpuNumbers, set()),
        (["adam", "sgd"], Optimizer, {"step"}),
        (["falling_scheduler", "constant_scheduler"], Scheduler, set()),
        (["full_method", "lora_method", "qlora_method"], Method, set()),
        (["target"], TargetSpec, set()),
        # Only measured runs say these (dsgen/score): how it steps, what the code does.
        # sequence_length: max is a field of its own; residents stand at the top.
        (["training"], Training, {"code", "longest", "residents"}),
        # precision is a wish that training states.
        (["want"], Wishes, {"precision"}),
    ],
)
def test_keys_are_the_fields_of_the_values(definitions: list[str], kind: type, left_out: set[str]) -> None:
    keys = {key for name in definitions for key in DEFS[name]["properties"]}
    assert keys ^ {field.name for field in dataclasses.fields(kind)} == left_out


def test_nested_values_have_their_fields_too() -> None:
    hardware = DEFS["hardware"]["properties"]
    for name, kind in (("interconnect", Interconnect), ("nvme", NvmeSpec)):
        assert set(hardware[name]["properties"]) == {field.name for field in dataclasses.fields(kind)}
    assert set(spec_schema()["properties"]) - {"residents", "launch"} == {
        field.name for field in dataclasses.fields(Spec)
    } - {"file", "places"}


def words_at(path: list[str]) -> Iterator[str]:
    """The words that may stand at that path, of all forms."""
    schemas = [spec_schema()]
    for step in path:
        forms = [flat(form) for schema in schemas for form in (schema, *flat(schema).get("anyOf", ()))]
        schemas = [flat(form["properties"][step]) for form in forms if step in form.get("properties", {})]
    for schema in schemas:
        for form in (schema, *map(flat, schema.get("anyOf", ()))):
            yield from [word for word in form.get("enum", [form.get("const")]) if isinstance(word, str)]


def dotted_paths() -> Iterator[list[str]]:
    for key, parents in homes().items():
        for parent in parents:
            yield [*parent.split("."), key] if parent else [key]


WORDS = [(path, word) for path in dotted_paths() for word in words_at(path)]


@pytest.mark.parametrize(("path", "word"), WORDS, ids=[f"{'.'.join(path)}={word}" for path, word in WORDS])
def test_every_word_is_obeyed_or_refused_as_not_supported_yet(path: list[str], word: str) -> None:
    spec: dict[str, Any] = {"model": {} if path[0] == "model" else "llama-2-7b", "hardware": {"gpu": "h100"}}
    parent = spec
    for step in path[:-1]:
        kind = "qlora" if path[-1] == "quantization" else "lora"
        parent = parent.setdefault(step, {"type": kind} if step == "method" else {})
    parent[path[-1]] = word
    assert all("not supported yet" in message for message in messages(spec))


def messages(spec: dict[str, Any]) -> list[str]:
    try:
        spec_from_mapping(spec)
    except InputError as error:
        return [problem.message for problem in error.problems]
    return []


def test_the_words_are_found() -> None:
    assert len(WORDS) > 40
    assert (["want", "checkpointing", "every"], "sqrt") in WORDS


def test_examples_are_found() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_are_read_here_and_by_any_editor(path: Path) -> None:
    spec = read_spec(str(path))
    assert spec.file == str(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../../schemas/spec.schema.json\n")
    # An editor types scalars by YAML's rules and knows nothing of x-dsgen.
    Draft202012Validator(spec_schema()).validate(yaml.safe_load(text))
