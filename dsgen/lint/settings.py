"""``[tool.dsgen]`` of the nearest pyproject.toml: what files are meant for, and which findings count."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsgen.errors import InputError
from dsgen.lint.beside import read_beside
from dsgen.lint.selection import Selection, check_code

if TYPE_CHECKING:
    from dsgen.lint.toml_file import TomlFile

LOADERS = ("deepspeed", "transformers", "accelerate", "lightning")
_SEVERITIES = ("error", "warning", "info")
_TARGET: Mapping[str, type[str] | type[int]] = {
    "deepspeed": str,
    "loaded-by": str,
    "world-size": int,
    "gpus-per-node": int,
    "gpu": str,
    "host-memory": str,
    "model": str,
    "sequence-length": int,
    "micro-batch": int,
    "checkpointing": str,
    "method": str,
    "spec": str,
}
# What is looked up, by the functions of dsgen.lint.stated of these names.
_LOOKED_UP = ("gpu", "host_memory", "model", "checkpointing", "method")
_LINT = ("select", "ignore", "per-file-ignores", "severity", "baseline")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project says once instead of by flags each time; empty where it says nothing."""

    target: Mapping[str, Any] = field(default_factory=dict)
    """As the flags have it: deepspeed, loaded_by, world_size, gpu, ..., looked up already."""
    selection: Selection = field(default_factory=Selection)
    baseline: Path | None = None


@cache
def settings_of(folder: Path) -> Settings:
    """The settings for files in a folder: of the nearest pyproject.toml with a ``[tool.dsgen]``.

    Raises:
        InputError: they are malformed.
    """
    data = read_beside(folder / "pyproject.toml")
    # Most such files do not name us, and need not be parsed.
    if b"dsgen" in data:
        from dsgen.lint.toml_file import TomlFile

        file = TomlFile(str(folder / "pyproject.toml"), data.decode(errors="replace"))
        table = file.table("tool", "dsgen")
        if table is not None:
            return _settings(file, table, folder)
    return settings_of(folder.parent) if folder.parent != folder else Settings()


def _settings(file: "TomlFile", table: Any, folder: Path) -> Settings:
    _check_table(file, table, (*_TARGET, "lint"))
    lint = table.get("lint", {})
    _check_table(file, lint, _LINT, "lint")
    baseline = lint.get("baseline")
    if baseline is not None and not isinstance(baseline, str):
        raise _wrong(file, "a path in quotes", "lint", "baseline")
    return Settings(
        target=dict(_target(file, table, folder)),
        selection=Selection(
            select=_codes(file, lint.get("select", []), "lint", "select"),
            ignore=_codes(file, lint.get("ignore", []), "lint", "ignore"),
            per_file_ignores=tuple(_per_file(file, lint.get("per-file-ignores", {}))),
            severity=dict(_severity(file, lint.get("severity", {}))),
            folder=folder,
        ),
        baseline=folder / baseline if baseline else None,
    )


def _target(file: "TomlFile", table: dict[str, Any], folder: Path) -> Iterator[tuple[str, Any]]:
    from dsgen.lint import versions

    for key, kind in _TARGET.items():
        if key not in table:
            continue
        value = table[key]
        if type(value) is not kind:  # true is no number here
            raise _wrong(file, "text in quotes" if kind is str else "a whole number", key)
        if isinstance(value, int) and value < 1:
            raise _wrong(file, "1 or more", key)
        if key == "loaded-by" and value not in LOADERS:
            raise _wrong(file, f"one of {', '.join(LOADERS)}", key)
        if key == "deepspeed" and isinstance(value, str):
            try:
                versions.parse(value)
            except InputError:
                raise _wrong(file, 'a version, such as "0.19.8"', key) from None
        name = key.replace("-", "_")
        if key == "spec":
            value = str(folder / value)
        yield name, _looked_up(file, key, name, value, folder) if name in _LOOKED_UP else value


def _looked_up(file: "TomlFile", key: str, name: str, value: str, folder: Path) -> Any:
    from dsgen.lint import stated  # late: few projects say more than a version

    try:
        return stated.model(value, folder) if name == "model" else getattr(stated, name)(value)
    except stated.Unknown as unknown:
        raise InputError.at(f"tool.dsgen.{key}: {unknown}", file.place(("tool", "dsgen", key))) from None


def _per_file(file: "TomlFile", table: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not isinstance(table, dict):
        raise _wrong(file, 'a table: {"PATTERN" = ["CODE"]}', "lint", "per-file-ignores")
    for pattern, codes in table.items():
        yield pattern, _codes(file, codes, "lint", "per-file-ignores", pattern)


def _severity(file: "TomlFile", table: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(table, dict):
        raise _wrong(file, 'a table: {CODE = "error"}', "lint", "severity")
    for code, severity in table.items():
        check_code(code, file.place(("tool", "dsgen", "lint", "severity", code)))
        if severity not in _SEVERITIES:
            raise _wrong(file, f"one of {', '.join(_SEVERITIES)}", "lint", "severity", code)
        yield code, severity


def _codes(file: "TomlFile", value: Any, *keys: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise _wrong(file, 'a list of codes: ["DS310", "TC"]', *keys)
    return tuple(check_code(code, file.place(("tool", "dsgen", *keys))) for code in value)


def _check_table(file: "TomlFile", table: Any, known: tuple[str, ...], *keys: str) -> None:
    if not isinstance(table, dict):
        raise _wrong(file, "a table", *keys)
    for key in table:
        if key not in known:
            from dsgen.lint.names import closest

            near = closest(key, known)
            name = ".".join(["tool", "dsgen", *keys])
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            place = file.place(("tool", "dsgen", *keys, key))
            raise InputError.at(f"{key!r} is no key of [{name}]", place, hint)


def _wrong(file: "TomlFile", wanted: str, *keys: str) -> InputError:
    place = file.place(("tool", "dsgen", *keys))
    problem = InputError.at(f"{'.'.join(['tool', 'dsgen', *keys])} is to be {wanted}", place)
    assert isinstance(problem, InputError)
    return problem
