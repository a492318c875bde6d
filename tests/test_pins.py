"""Library versions are said once: what runs here is what versions.csv and pyproject.toml say."""

import re
import tomllib

import pytest
from console import ROOT

from dsgen.facts.versions import Library, libraries

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = [requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "tests" / "constraints.txt").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("library", libraries().values(), ids=libraries().keys())
def test_executed_is_what_tests_install(library: Library) -> None:
    assert PINS[library.name] == library.executed


@pytest.mark.parametrize("library", libraries().values(), ids=libraries().keys())
def test_readme_names_what_was_executed(library: Library) -> None:
    executed = (ROOT / "README.md").read_text("utf-8").partition("## What was executed")[2]
    assert f"{library.name} {library.executed}".lower() in executed.lower()


@pytest.mark.parametrize("library", libraries().values(), ids=libraries().keys())
def test_oldest_is_what_the_extras_ask(library: Library) -> None:
    assert f"{library.name}>={library.oldest}" in EXTRAS


def test_every_dependency_of_the_tests_is_pinned() -> None:
    asked = {re.split(r"[\[>=<]", requirement)[0] for requirement in [*PROJECT["dependencies"], *EXTRAS]}
    # setuptools compiles DeepSpeed's ops and comes with torch's own bounds.
    assert asked - PINS.keys() == {"dsgen", "setuptools"}
