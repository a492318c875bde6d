"""Flags that count processes and nodes."""

from collections.abc import Iterator, Mapping

from dsgen.reading import LeftOut, Said, SpecPath

GPUS: SpecPath = ("hardware", "gpus_per_node")
NODES: SpecPath = ("hardware", "nodes")


def counts(
    flags: Mapping[str, str],
    names: Mapping[str, tuple[str, ...]],
    line: int,
    left: list[LeftOut],
    *,
    default: Mapping[str, int] | None = None,
) -> Iterator[Said]:
    """Flags that count something; one that counts nothing that is written out is left out."""
    for key, path in names.items():
        count = whole(key, flags, left)
        if count is not None:
            yield Said(path, count, (line,), f"--{key}")
        elif default is not None and key not in flags:
            yield Said(path, default[key], (line,), f"the launcher's default without --{key}")


def whole(key: str, flags: Mapping[str, str], left: list[LeftOut]) -> int | None:
    """A flag as a positive whole number."""
    value = flags.get(key)
    if value is None:
        return None
    if value.isascii() and value.isdecimal() and len(value) < 9 and int(value) > 0:
        return int(value)
    left.append(LeftOut(key, value, "is no number that is written out"))
    return None
