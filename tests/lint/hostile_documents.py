"""Documents that nobody should write: generated, and mutated from real ones, for every reader of the linter."""

import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from deepspeed_configs import KEYS, SCRAPS, corpus, mutated, real_values


class Hostile(NamedTuple):
    """One document with who reads it."""

    entry: str
    """json, hjson, yaml, accelerate, python, settings, baseline, pins or ignores: the reader that it is for."""
    data: bytes


ENTRIES = ("json", "hjson", "yaml", "accelerate", "python", "settings", "baseline", "pins", "ignores")
EXTREMES: list[Any] = [
    *(10**400, -(10**400), 1e308, -1e308, 5e-324, -0.0, float("nan"), float("inf"), float("-inf")),
    *("\ud800", "\udfff\ud800", "\0", "\x1b[31m", "\u202e", "9" * 5000, "a" * 50_000, "\ufeff", "\u2028", "é" * 300),
    *([], {}, [[[[]]]], [None], {"": None}, {"a": {"b": [{}]}}, {"enabled": {"enabled": "auto"}}, [{"lr": 1}] * 50),
]
_TOKENS = (
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "'",
        "'''",
        "#",
        "//",
        "/*",
        "*/",
        "\\",
        "\\u",
        "\\ud800",
        "&a ",
        "*a",
        "<<: ",
    ),
    *(
        "\0",
        "\x1a",
        "\ufeff",
        "\u2028",
        "\x85",
        "\r",
        "\n",
        "\r\n",
        "\t",
        "- ",
        "? ",
        "| ",
        "> ",
        "!!",
        "%YAML ",
        "---",
    ),
    *(
        "1e999",
        "-",
        "0x",
        "1_0",
        ".5",
        "NaN",
        "null",
        "true",
        "auto",
        "dsgen: ignore[",
        "]",
        "# dsgen: ignore",
        "é",
        "\U0001d4b3",
        "9" * 5000,
    ),
    *("(", ")", "=", "def f(", "lambda: ", "import ", '"""', "f'{", "async ", "@", "\x0c", "    ", "\\\n"),
)
_DEEP: tuple[Callable[[int], str], ...] = (
    lambda n: "[" * n,
    lambda n: "[" * n + "]" * n,
    lambda n: '{"a":' * n + "1" + "}" * n,
    lambda n: "{a:" * n,
    lambda n: "- " * n,
    lambda n: "\n".join(" " * level + "a:" for level in range(min(n, 300))),
    lambda n: "(" * n + ")" * n,
    lambda n: "-" * n + "1",
    lambda n: "x = " + "1+" * n + "1",
    lambda n: "a" + ".a" * n,
    lambda n: "/*" * n,
    lambda n: "'''" * n,
    lambda n: '"' + "\\" * n,
    lambda n: "{" + ",".join(f'"k{i}":{i}' for i in range(n)) + "}",
    lambda n: "{" + '"stage": 1,' * n + "}",
    lambda n: "\n" * n + "}",
    lambda n: " " * n + "{",
    lambda n: "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(min(n, 50))),
    lambda n: "# dsgen: ignore[" + "DS110," * n + "]",
)
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp1252")


def seeds() -> dict[str, list[str]]:
    """What mutations start from, by entry."""
    values = sorted(real_values(), key=lambda value: len(json.dumps(value)))[:: max(1, len(real_values()) // 60)]
    texts = [json.dumps(value, indent=indent) for value in values for indent in (None, 2)]
    texts += [real.path.read_text("utf-8", errors="replace") for real in corpus()[::6]]
    here = Path(__file__).parent
    code = [path.read_text("utf-8") for path in sorted((here / "python" / "snippets").glob("*.txt"))]
    code += [
        f"import deepspeed\nconfig = {value!r}\nengine = deepspeed.initialize(config=config)\n" for value in values
    ]
    launch = {"compute_environment": "LOCAL_MACHINE", "distributed_type": "DEEPSPEED", "mixed_precision": "bf16"}
    wrapped = [{**launch, "deepspeed_config": value} for value in values]
    wrapped += [{**launch, "deepspeed_config": {"zero_stage": 3, "offload_optimizer_device": "cpu"}}]
    settings = (
        '[tool.dsgen]\ndeepspeed = "0.16.4"\nloaded-by = "transformers"\nworld-size = 16\n\n[tool.dsgen.lint]\n'
        'select = ["DS"]\nignore = ["DS310"]\nper-file-ignores = {"a/*" = ["TC"]}\nseverity = {DS406 = "error"}\n'
    )
    baseline = json.dumps({"version": 1, "findings": [{"file": "a.json", "code": "DS110", "at": "x", "count": 2}]})
    pins = 'torch==2.6\ndeepspeed[ops]==0.16.4  # pinned\n\n[[package]]\nname = "deepspeed"\nversion = "0.17.1"\n'
    ignoring = [f"// dsgen: ignore[DS110]\n{text}" for text in texts[::7]]
    return {
        "json": texts,
        "hjson": texts,
        "yaml": [json.dumps(value) for value in values] + [_as_yaml(value) for value in values],
        "accelerate": [_as_yaml(value) for value in wrapped],
        "python": code,
        "settings": [settings],
        "baseline": [baseline],
        "pins": [pins],
        "ignores": [text.replace("\n", " // dsgen: ignore[DS111] why\n", 2) for text in ignoring],
    }


def _as_yaml(value: Any) -> str:
    import yaml

    return str(yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))


def documents(start: int, count: int) -> Iterator[Hostile]:
    """Documents number ``start`` on; each number always gives the same one."""
    known = seeds()
    return (_document(random.Random(number), known) for number in range(start, start + count))


def _document(rng: random.Random, known: dict[str, list[str]]) -> Hostile:
    # Configs are what the linter is for: they get half of it.
    entry = rng.choice((*ENTRIES, "json", "hjson", "json", "hjson", "json", "hjson"))
    if rng.random() < 0.04:
        text = rng.choice(_DEEP)(
            rng.choice((10, 127, 128, 129, 130, 1000, 1000, 10_000 if rng.random() < 0.2 else 300))
        )
    elif rng.random() < 0.06:
        text = "".join(rng.choice((*_TOKENS, *KEYS, rng.choice(string.printable))) for _ in range(rng.randrange(60)))
    else:
        text = rng.choice(known[entry])
        if entry in ("json", "hjson", "baseline"):
            text = _respelt(text, rng)
        for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
            text = _cut(text, known[entry], rng)
    return Hostile(entry, _encoded(text, rng))


def _respelt(text: str, rng: random.Random) -> str:
    """The same document with values changed and keys written twice, in another layout."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    for _ in range(rng.randrange(4)):
        value = mutated(value, rng) if isinstance(value, dict) else value
    value = _spoilt(value, rng)
    written = json.dumps(value, indent=rng.choice((None, 2, "\t")), ensure_ascii=rng.random() < 0.7)
    if rng.random() < 0.1:
        key = rng.choice(KEYS)
        written = written.replace("{", f'{{"{key}": 1, "{key}": {json.dumps(rng.choice(SCRAPS))}, ', 1)
    return written


def _spoilt(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        return {(key if rng.random() > 0.02 else key + rng.choice("\0 é")): _spoilt(v, rng) for key, v in value.items()}
    try:
        return rng.choice((*SCRAPS, *EXTREMES)) if rng.random() < 0.12 else value
    except ValueError:
        return value


def _cut(text: str, others: list[str], rng: random.Random) -> str:
    """A stretch left out, doubled, replaced by a token, or by a stretch of another document."""
    start = rng.randrange(len(text) + 1)
    end = min(len(text), start + rng.choice((0, 1, 1, 2, 5, 40, 400)))
    match rng.randrange(6):
        case 0:
            middle = ""
        case 1:
            middle = text[start:end] * rng.choice((2, 2, 3, 200))
        case 2:
            other = rng.choice(others)
            begin = rng.randrange(len(other) + 1)
            middle = other[begin : begin + rng.choice((5, 50, 500))]
        case 3:
            middle = rng.choice(_TOKENS) * rng.choice((1, 1, 1, 2, 300))
        case 4:
            return text[:start]
        case _:
            middle = rng.choice(_TOKENS)
    return text[:start] + middle + text[end:]


def _encoded(text: str, rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        text = text.replace("\n", rng.choice(("\r\n", "\r", "\n\r", "\u2028")))
    if rng.random() < 0.04:
        return text.encode(rng.choice(_ENCODINGS), errors="replace")
    data = text.encode("utf-8", errors="surrogatepass")
    if rng.random() < 0.04 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes(rng.randrange(256) for _ in range(3)) + data[at + rng.randrange(3) :]
    return b"\xef\xbb\xbf" + data if rng.random() < 0.02 else data
