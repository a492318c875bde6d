"""The floors of the house: who may import whom. FLOORS is the only table; CONTRIBUTING.md shows it.

Reads imports with ast, also those inside functions and under TYPE_CHECKING, and literal
``import_module("...")`` calls. What is run as its own process is no import.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Room:
    """Modules that belong together: they may import each other and what lies on floors below."""

    name: str
    modules: tuple[str, ...]
    """Each stands for itself and all beneath it; a module belongs to the longest that covers it."""
    holds: str


# From the roof to the ground. Rooms on one floor don't see each other.
FLOORS: tuple[tuple[Room, ...], ...] = (
    (Room("cli", ("dsgen.cli", "dsgen.__main__"), "flags, printing, exit codes; one small module per command"),),
    (
        Room("report", ("dsgen.report",), "plan, ledger, findings and runs to text and JSON"),
        Room("lsp", ("dsgen.lsp",), "findings, facts and completions for editors, while they type"),
    ),
    (
        Room("smoke", ("dsgen.smoke",), "starts worker processes, watches them, judges what came back"),
        Room("simulate", ("dsgen.simulate",), "memory of the real training code, run on tensors without contents"),
        Room("estimate", ("dsgen.estimate",), "a config that exists, and what it takes"),
        Room("init", ("dsgen.init",), "a first spec: from answers, from this machine, from files"),
    ),
    (Room("lint", ("dsgen.lint",), "rules over files"),),
    (
        Room("planner", ("dsgen.planner",), "wishes to ranked plans, each with its reasons"),
        Room("score", ("dsgen.score",), "measured runs beside what the ledger says of them"),
    ),
    (Room("write", ("dsgen.formats",), "plan to files, through templates/"),),
    (Room("read", ("dsgen.formats.*.read",), "files to wishes"),),
    (
        Room("memory", ("dsgen.memory",), "bytes of a plan: the ledger"),
        Room("steptime", ("dsgen.steptime",), "seconds of a plan"),
    ),
    (
        Room("legality", ("dsgen.legality",), "one table of what may stand together, by version"),
        Room("reading", ("dsgen.reading",), "what readers hand back"),
    ),
    (
        Room("plan", ("dsgen.plan",), "the decided layout"),
        Room("shapes", ("dsgen.shapes",), "the model's tensors"),
        Room("target", ("dsgen.target",), "who it is for"),
        Room("hardware", ("dsgen.hardware",), "the machines"),
    ),
    (Room("spec", ("dsgen.spec",), "spec.yaml to checked values"),),
    (
        Room("facts", ("dsgen.facts",), "tables; every row has its source"),
        Room("documents", ("dsgen.documents",), "files parsed with the place of every value"),
    ),
    (
        Room("units", ("dsgen.units",), "sizes, counts and numbers as people write them"),
        Room("data", ("dsgen.data",), "where schemas/ and templates/ lie; the schemas, read once"),
        Room("signals", ("dsgen.signals",), "how a command that is told to end does so"),
        Room("processes", ("dsgen.processes",), "worker processes: started, read along with, ended"),
    ),
    (
        Room("errors", ("dsgen.errors",), "what can go wrong, as values"),
        Room("version", ("dsgen",), "the version, nothing else"),
    ),
)

# Lower, yet closed: lint judges what others wrote, so it must not share our writers' opinions.
CLOSED: Mapping[str, Set[str]] = {"lint": {"planner", "write"}}

# Beside the house: always its own process, so nothing imports it, and it needs little of the house.
WORKERS = "dsgen.workers"
WORKERS_MAY_USE: Set[str] = {"errors", "version"}

# Seconds to import, and absent where only the core is installed.
ONLY_WORKERS: Set[str] = {"torch", "deepspeed", "transformers", "accelerate"}

# Come with the extra of the same name.
ONLY_LSP: Set[str] = {"pygls", "lsprotocol"}


@dataclass(frozen=True)
class Import:
    """One import: who is imported, on which line."""

    line: int
    module: str


def floor_and_room(module: str) -> tuple[int, str] | None:
    """Height of the floor (0 is the ground) and name of the room; None where a module has no floor."""
    matches = [
        (len(pattern), len(FLOORS) - 1 - depth, room.name)
        for depth, rooms in enumerate(FLOORS)
        for room in rooms
        for pattern in room.modules
        if _covers(pattern, module)
    ]
    if not matches:
        return None
    _, height, name = max(matches)
    return height, name


def _covers(pattern: str, module: str) -> bool:
    beneath = f"{pattern}.*" if pattern != "dsgen" else pattern
    return fnmatchcase(module, pattern) or fnmatchcase(module, beneath)


def imports(source: str, module: str, modules: Set[str], *, is_package: bool = False) -> Iterator[Import]:
    """Every import in ``source``; ``modules`` tells a submodule from a name (``from dsgen import plan``)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            package = module if is_package else module.rpartition(".")[0]
            parts = package.split(".")
            parents = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(node.lineno, full if full in modules else base)
        elif isinstance(node, ast.Call) and _is_import_call(node.func):
            match node.args:
                case [ast.Constant(value=str(name)), *_]:
                    yield Import(node.lineno, name)


def _is_import_call(function: ast.expr) -> bool:
    name = getattr(function, "attr", None) or getattr(function, "id", None)
    return name in {"import_module", "__import__"}


def violations(
    sources: Mapping[str, str], *, libraries: Set[str] = frozenset(), packages: Set[str] = frozenset()
) -> list[str]:
    """What breaks the table, one line each. ``libraries`` are the installed ones that the house may import."""
    found = []
    for module, source in sorted(sources.items()):
        if floor_and_room(module) is None and not _in_workers(module):
            found.append(f"{module}: has no floor; give it one in tests/floors.py")
            continue
        for seen in imports(source, module, sources.keys(), is_package=module in packages):
            reason = _forbidden(module, seen.module, libraries)
            if reason:
                found.append(f"{module}:{seen.line}: imports {seen.module}: {reason}")
    return found


def _in_workers(module: str) -> bool:
    return module == WORKERS or module.startswith(WORKERS + ".")


def _forbidden(importer: str, imported: str, libraries: Set[str]) -> str | None:
    top = imported.partition(".")[0]
    if top != "dsgen":
        return _forbidden_library(importer, top, libraries)
    if _in_workers(imported):
        return None if _in_workers(importer) else "workers run as their own process"
    place = floor_and_room(imported)
    if place is None:
        return "it has no floor"
    if _in_workers(importer):
        return None if place[1] in WORKERS_MAY_USE else "workers stand beside the house"
    own = floor_and_room(importer)
    assert own is not None
    if place[1] in CLOSED.get(own[1], set()):
        return f"{place[1]} is closed to {own[1]}"
    if place[1] == own[1] or place[0] < own[0]:
        return None
    return f"{place[1]} is not below {own[1]}"


def _forbidden_library(importer: str, top: str, libraries: Set[str]) -> str | None:
    if top in sys.stdlib_module_names or _in_workers(importer):
        return None
    if top in ONLY_WORKERS:
        return "only workers may import it"
    if top in ONLY_LSP:
        room = floor_and_room(importer)
        return None if room is not None and room[1] == "lsp" else "only lsp may import it"
    return None if top in libraries else "it is no dependency of dsgen (pyproject.toml)"


def table() -> str:
    """The floors as CONTRIBUTING.md shows them, from the roof to the ground."""
    lines = ["| floor | room | modules | holds |", "|---|---|---|---|"]
    for depth, rooms in enumerate(FLOORS):
        for room in rooms:
            modules = ", ".join(f"`{pattern}`" for pattern in room.modules)
            lines.append(f"| {len(FLOORS) - 1 - depth} | {room.name} | {modules} | {room.holds} |")
    return "\n".join(lines)
