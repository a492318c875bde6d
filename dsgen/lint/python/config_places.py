"""Where in a config that code names a key stands, for findings that need both."""

import ast
from pathlib import Path

from dsgen.documents.source import MAX_BYTES
from dsgen.lint.beside import read_beside
from dsgen.lint.config_file import read_config
from dsgen.lint.finding import Elsewhere
from dsgen.lint.neighbours import shown
from dsgen.lint.python.configs import config_of
from dsgen.lint.python.names import called
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.target import Loader

Related = tuple[tuple[ast.AST | Elsewhere, str], ...]


def related(file: PythonFile, given: ast.expr | None, loader: Loader, path: tuple[str, ...], message: str) -> Related:
    """The key at a path of the config as a related place; none where it cannot be told."""
    place = place_of(file, given, loader, path) if given is not None else None
    return ((place, message),) if place is not None else ()


def place_of(file: PythonFile, given: ast.expr, loader: Loader, path: tuple[str, ...]) -> ast.AST | Elsewhere | None:
    """The key's node in a dict that is written out, or its place in a file beside the code."""
    if config_of(file, given, loader) is None:
        return None
    (origin,) = origins(file, given)
    match origin.node:
        case ast.Dict() as written:
            return _key(written, path)
        case ast.Constant(value=str() as name):
            return _in_file(file, name, loader, path)
        case ast.Call(args=[opened, *_]) as call if called(file, call) == "json.load":
            for inner in origins(file, opened):
                match inner.node:
                    case ast.Call(args=[ast.Constant(value=str() as name), *_]):
                        return _in_file(file, name, loader, path)
    return None


def _key(written: ast.Dict, path: tuple[str, ...]) -> ast.AST | None:
    node: ast.AST = written
    key: ast.AST | None = None
    for name in path:
        if not isinstance(node, ast.Dict):
            return key
        pairs = [(k, v) for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)]
        found = next(((k, v) for k, v in pairs if k.value == name), None)
        if found is None:
            return key
        key, node = found
    return key


def _in_file(file: PythonFile, name: str, loader: Loader, path: tuple[str, ...]) -> Elsewhere | None:
    if file.folder is None:
        return None
    where = file.folder / Path(name)
    config = read_config(read_beside(where, MAX_BYTES), loader)
    return Elsewhere(shown(where.absolute()), config.locate(path, "key")) if config.is_read else None
