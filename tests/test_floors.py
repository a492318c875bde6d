"""The floors hold: nobody imports upwards, and files stay small."""

import subprocess
import sys
import tomllib
from pathlib import Path

import floors
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dsgen"
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_LINES = 400
P90_LINES = 250
# Tables that hold functions too, so CSV can't say them; one entry per row, nothing else.
TABLES = {"dsgen/shapes/hf_classes.py"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def libraries() -> set[str]:
    """Import names of the core dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {requirement.split(">")[0].strip().lower() for requirement in project["dependencies"]}
    return {{"pyyaml": "yaml"}.get(name, name) for name in names}


def test_the_house_obeys_the_table() -> None:
    sources = {module_name(path): path.read_text("utf-8") for path in FILES}
    packages = {module_name(path) for path in FILES if path.name == "__init__.py"}
    assert {"dsgen", "dsgen.cli", "dsgen.plan", "dsgen.facts.tables"} <= sources.keys()
    assert floors.violations(sources, libraries=libraries(), packages=packages) == []


def test_contributing_shows_the_table() -> None:
    assert floors.table() in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("dsgen", "version"),
        ("dsgen.__main__", "cli"),
        ("dsgen.cli", "cli"),
        ("dsgen.cli.plan", "cli"),
        ("dsgen.plan", "plan"),
        ("dsgen.planner", "planner"),
        ("dsgen.planner.decide", "planner"),
        ("dsgen.formats", "write"),
        ("dsgen.formats.values", "write"),
        ("dsgen.formats.deepspeed.write", "write"),
        ("dsgen.formats.deepspeed.read", "read"),
        ("dsgen.formats.deepspeed.read.values", "read"),
        ("dsgen.memory.ledger", "memory"),
        ("dsgen.steptime.parts", "steptime"),
        ("dsgen.lsp.server", "lsp"),
    ],
)
def test_every_module_has_its_room(module: str, room: str) -> None:
    found = floors.floor_and_room(module)
    assert found is not None
    assert found[1] == room


def test_what_matches_no_room_has_no_floor() -> None:
    assert floors.floor_and_room("dsgen.helpers") is None
    assert floors.violations({"dsgen.helpers": ""}) == [
        "dsgen.helpers: has no floor; give it one in tests/floors.py",
    ]


PLANTED = {
    "upwards": ("dsgen.facts.gpus", "from dsgen.planner.decide import decide", "planner is not below facts"),
    "upwards, from a package": ("dsgen.memory.ledger", "from dsgen import planner", "planner is not below memory"),
    "upwards, inside a function": ("dsgen.spec.read", "def f():\n    import dsgen.cli", "cli is not below spec"),
    "upwards, only for types": (
        "dsgen.plan",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dsgen.memory.ledger import Ledger",
        "memory is not below plan",
    ),
    "upwards, by name": (
        "dsgen.legality.rows",
        "import importlib\nimportlib.import_module('dsgen.formats.values')",
        "write is not below legality",
    ),
    "upwards, relative": ("dsgen.shapes.values", "from ..memory import ledger", "memory is not below shapes"),
    "upwards, relative from a package": ("dsgen.memory", "from ..planner import decide", "planner is not below memory"),
    "sideways": ("dsgen.shapes.values", "from dsgen.plan import Plan", "plan is not below shapes"),
    "readers never see writers": (
        "dsgen.formats.deepspeed.read",
        "from dsgen.formats.deepspeed.write import write",
        "write is not below read",
    ),
    "formats never decide": ("dsgen.formats.deepspeed.write", "import dsgen.planner", "planner is not below write"),
    "lint never plans": ("dsgen.lint.rules.x", "from dsgen.planner.decide import decide", "planner is closed to lint"),
    "lint never writes": ("dsgen.lint.x", "from dsgen.formats.deepspeed import write", "write is closed to lint"),
    "workers are processes": ("dsgen.smoke.run", "import dsgen.workers.train", "workers run as their own process"),
    "workers stand alone": ("dsgen.workers.train", "from dsgen.plan import Plan", "workers stand beside the house"),
    "torch in the house": ("dsgen.smoke.run", "def f():\n    import torch.cuda", "only workers may import it"),
    "the editors' protocol elsewhere": ("dsgen.cli.lsp", "from pygls.lsp.server import X", "only lsp may import it"),
    "lint for editors": ("dsgen.lint.run", "import dsgen.lsp.text", "lsp is not below lint"),
    "an undeclared library": ("dsgen.report.text", "import numpy as np", "no dependency of dsgen"),
}


@pytest.mark.parametrize(("module", "source", "reason"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_violation_is_found(module: str, source: str, reason: str) -> None:
    names = ("dsgen.planner", "dsgen.planner.decide", "dsgen.memory.ledger", "dsgen.formats.deepspeed.write")
    sources = dict.fromkeys(names, "") | {module: source}
    packages = {"dsgen.memory", "dsgen.planner"}
    found = floors.violations(sources, libraries={"jsonschema", "yaml", "jinja2", "rich"}, packages=packages)
    assert len(found) == 1
    assert found[0].startswith(f"{module}:{len(source.splitlines())}: imports ")
    assert reason in found[0]


def test_what_is_allowed_stays_quiet() -> None:
    sources = {
        "dsgen": "__version__ = '0'",
        "dsgen.cli.plan": "from dsgen import __version__\nfrom dsgen.planner.decide import decide\nimport rich.table",
        "dsgen.planner.decide": "from dsgen.memory.ledger import Ledger\nfrom .values import Decision\nimport json",
        "dsgen.lint.engine": "from dsgen.formats.deepspeed.read import read\nfrom dsgen.legality import rows",
        "dsgen.lsp.server": "import lsprotocol.types\nfrom dsgen.lint.check import check",
        "dsgen.workers.train": "import torch, deepspeed\nfrom dsgen.workers.model import Decoder\nimport dsgen.errors",
    }
    assert floors.violations(sources, libraries={"rich"}) == []


def test_files_are_small() -> None:
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES}.keys() <= TABLES
    ninetieth = sorted(lines.values())[len(lines) * 9 // 10]
    assert ninetieth <= P90_LINES, f"a tenth of the files have more than {ninetieth} lines"


# Cold start is a feature: what the command line loads before it knows what to do.
HEAVY = (
    {"torch", "deepspeed", "transformers", "accelerate", "numpy", "jsonschema", "yaml", "jinja2", "rich"}
    | {"csv", "asyncio", "multiprocessing", "http", "unittest", "importlib.metadata"}
    | {"dsgen.planner", "dsgen.facts", "dsgen.spec", "dsgen.memory"}
)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_loads_nothing_heavy(flag: str) -> None:
    code = f"""if True:
        import sys
        from dsgen.cli import main
        try:
            main([{flag!r}])
        except SystemExit as leaving:
            assert not leaving.code
        print(*sys.modules, sep="\\n", file=sys.stderr)
    """
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    loaded = set(ran.stderr.split())
    assert "dsgen.cli" in loaded
    assert ran.stdout
    assert loaded & HEAVY == set()
