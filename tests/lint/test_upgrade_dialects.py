"""A config is upgraded alike wherever it stands: in JSON, in YAML (block, braces, a section), in code."""

import ast
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from deepspeed_configs import mutated, real_values

from dsgen.documents.hjson_text import read_hjson
from dsgen.documents.yaml_text import read_yaml
from dsgen.lint.files import Source
from dsgen.lint.kinds import kind_of
from dsgen.lint.target import make_target
from dsgen.lint.upgrade_file import UpgradedFile, upgrade_file

VERSIONS = [("0.14.4", "0.17.0"), ("0.16.3", "0.19.8"), ("0.19.8", "0.15.4")]


def upgraded(name: str, text: str, versions: tuple[str, str]) -> UpgradedFile:
    kind = kind_of(name)
    assert kind is not None
    old, new = (make_target(version, "deepspeed") for version in versions)
    found = upgrade_file(Source(name, text.encode("utf-8", "surrogatepass"), kind), old, new)
    assert found is not None, text
    return found


def told(found: UpgradedFile) -> list[tuple[Any, ...]]:
    return sorted((one.path, one.before, one.after, one.kept) for each in found.upgrades for one in each.differences)


def as_yaml(config: Any, **style: Any) -> str:
    return str(yaml.safe_dump(config, sort_keys=False, **style))


def as_code(config: Any) -> str:
    return f"import deepspeed\nconfig = {config!r}\nengine = deepspeed.initialize(model=model, config=config)\n"


def dict_of(code: str) -> Any:
    return ast.literal_eval(next(node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assign)))


FORMS: dict[str, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    "block": ("x.yaml", as_yaml, lambda text: read_yaml(text).value),
    "braces": (
        "x.yaml",
        lambda config: "# \n" + as_yaml(config, default_flow_style=True),
        lambda text: read_yaml(text).value,
    ),
    "section": (
        "x.yaml",
        lambda config: as_yaml({"deepspeed": config}),
        lambda text: read_yaml(text).value["deepspeed"],
    ),
    "code": ("x.py", as_code, dict_of),
}


def is_one(config: Any) -> bool:
    """Whether YAML and code take it for a config by its keys, and write it as it is."""
    plain = json.dumps(config)
    return "train_batch_size" in config and '"*' not in plain and "<<" not in plain and "Infinity" not in plain


def alike(form: str, count: int) -> None:
    name, write, read = FORMS[form]
    rng = random.Random()
    configs = [config for config in real_values() if is_one(config)]
    for _ in range(count):
        # As DeepSpeed's reader of JSON has it: 5e8 is a whole number there, and a float in YAML and code.
        config = read_hjson(json.dumps(mutated(rng.choice(configs), rng))).value
        if not isinstance(config, dict) or not is_one(config):
            continue
        versions = rng.choice(VERSIONS)
        by_json = upgraded("x.json", json.dumps(config), versions)
        found = upgraded(name, write(config), versions)
        assert told(found) == told(by_json), (config, versions)
        assert read(found.edited) == json.loads(by_json.edited), (config, versions, found.edited)


@pytest.mark.parametrize("form", FORMS)
def test_alike(form: str) -> None:
    alike(form, 12)


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
def test_many_are_alike(form: str) -> None:
    alike(form, 400)
