"""What nobody should write, and what must not happen then: a traceback, a hang, code that runs."""

import ast
import time
from pathlib import Path

import pytest
from python_lint import lint

from dsgen.lint.python.read import MOST_BYTES, read_python
from dsgen.lint.target import make_target

LOOP = """
import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, batch in enumerate(loader):
    (model(batch).mean() / 4).backward()
    if step % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

BROKEN: dict[str, tuple[bytes, int, str]] = {
    "a colon forgotten": (b"x = 1\nfor a in b\n    pass\n", 2, "expected ':'"),
    "Python 2": (b"print 'hello'\n", 1, "Missing parentheses"),
    "tabs and blanks": (b"if x:\n\ty = 1\n        z = 2\n", 3, "tabs"),
    "an open bracket": (b"x = (1,\n", 1, "never closed"),
    "a NUL byte": (b"x = 1\ny = '\0'\n", 2, "NUL"),
    "no such encoding": (b"# -*- coding: klingon -*-\nx = 1\n", 1, "encoding"),
    "latin-1 without saying so": ("x = 1\ny = 'é'\n".encode("latin-1"), 2, "0xe9"),
    "a mark and another encoding": (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", 1, "encoding"),
    "UTF-16": ("x = 1\n".encode("utf-16"), 1, ""),
    "too deep for the parser": (b"x = " + b"(" * 5000 + b")" * 5000, 1, ""),
    "a number too long": (b"x = " + b"9" * 5000, 1, "not valid Python"),
    "too large": (b"#" * (MOST_BYTES + 1), 1, "MiB"),
}


@pytest.mark.parametrize(("data", "line", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_python_is_one_finding(data: bytes, line: int, words: str) -> None:
    findings = lint(data)
    assert [(finding.code, finding.severity, finding.range.line) for finding in findings] == [("TC101", "error", line)]
    assert words in findings[0].message


READ: dict[str, bytes] = {
    "empty": b"",
    "a comment": b"# nothing",
    "an old encoding": "# -*- coding: latin-1 -*-\n# caf\u00e9\n".encode("latin-1") + LOOP.encode(),
    "a byte order mark": b"\xef\xbb\xbf" + LOOP.encode(),
    "DOS line ends": LOOP.replace("\n", "\r\n").encode(),
    "old Mac line ends": LOOP.replace("\n", "\r").encode(),
    "form feeds": b"\x0c\n" + LOOP.encode(),
    "an invalid escape": b"x = '\\d'\n" + LOOP.encode(),
    "names in Greek": LOOP.replace("loader", "δεδομένα").encode(),
}


@pytest.mark.parametrize("data", READ.values(), ids=READ.keys())
def test_what_python_reads_is_read(data: bytes) -> None:
    codes = [finding.code for finding in lint(data)]
    assert codes == (["TC201"] if b"backward" in data else [])


def test_columns_count_code_points() -> None:
    text = LOOP.replace("if step % 4 == 0:", "if 'ππππ' and step % 4 == 0:")
    (finding,) = lint(text)
    assert finding.range == (6, 19, 6, 32)
    assert text.splitlines()[5][18:31] == "step % 4 == 0"


DEEP: dict[str, str] = {
    "a long sum": "loss = " + " + ".join(["a"] * 3000) + "\nloss.backward()\n",
    "a long chain of attributes": "x = a" + ".b" * 3000 + "\nx.backward()\nx.step()\n",
    "a long chain of calls": "x = a" + ".b()" * 1000 + "\nx.backward()\n",
    "many branches": "if x == 0:\n    pass\n" + "".join(f"elif x == {i}:\n    loss.backward()\n" for i in range(1500)),
    "deep blocks": "".join("    " * i + "for i in x:\n" for i in range(18)) + "    " * 18 + "loss.backward()\n",
    "a name in a circle": "a = b\nb = c\nc = a\na.backward()\na.step()\n",
    "a function that returns itself": "def f(x):\n    return f(f(x))\nf(1).backward()\n",
    "functions in a circle": "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\nf(1).backward()\nf(2).step()\n",
    "a class that is its own base": "class A(A):\n    pass\nA().x.backward()\n",
    "a loss made of itself": "loss = loss + loss\nloss = loss * loss\nloss.backward()\n",
    "bindings by the thousand": "import torch\n" + "x = x + 1\n" * 3000 + "x.backward()\n",
    "doubling": "import torch\n"
    + "".join(f"x{i + 1} = x{i} if c else x{i}.y\n" for i in range(200))
    + "x200.backward()\n",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_what_is_deep_or_turns_in_circles_ends(text: str) -> None:
    start = time.process_time()
    lint("import torch, deepspeed, accelerate\n" + text + LOOP)
    assert time.process_time() - start < 10


BIG: dict[str, str] = {
    "fifty thousand lines": "import torch\n" + "value = compute(value, 3)\n" * 50_000,
    "one function of twenty thousand lines": "import torch\ndef f():\n"
    + "    value = compute(value, 3)\n" * 20_000
    + LOOP,
    "ten thousand backward passes": "import torch\n" + "loss.backward()\noptimizer.step()\n" * 10_000,
    "many functions": "import torch\n"
    + "".join(f"def f{i}(x):\n    x.backward()\n    return f{(i * 7) % 3000}(x)\n" for i in range(3000)),
    "many loops": "import torch\n"
    + "".join(f"for i, b in enumerate(d{k}):\n    m(b).backward()\n    o.step()\n" for k in range(1500)),
    "one function called everywhere": "import torch\ndef f(m, b):\n    m(b).backward()\n" + "f(m, b)\n" * 10_000,
    "many wraps": "from torch.distributed.fsdp import fully_shard\n"
    + "fully_shard(m)\n" * 3000
    + "m.no_sync()\n" * 3000,
}


@pytest.mark.parametrize("text", BIG.values(), ids=BIG.keys())
def test_what_is_big_is_done_in_seconds(text: str) -> None:
    start = time.process_time()
    lint(text)
    assert time.process_time() - start < 20


def test_nothing_that_is_linted_runs(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')\n"
    (tmp_path / "train.py").write_text(f"import torch\n{code}\nif True:\n    {code}{LOOP}")
    (tmp_path / "torch.py").write_text(code)
    findings = lint((tmp_path / "train.py").read_bytes(), str(tmp_path / "train.py"))
    assert [finding.code for finding in findings] == ["TC201"]
    assert not mark.exists()


INITIALIZE = "import deepspeed\nengine, *_ = deepspeed.initialize(model=net, config={config!r})\nengine.no_sync()\n"


def test_a_config_beside_the_code_is_read_and_nothing_else(tmp_path: Path) -> None:
    import os

    (tmp_path / "ds_config.json").write_text('{"zero_optimization": {"stage": 3}} // hjson')
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "huge.json").write_text(" " * (2 << 20))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")

    def codes(config: str) -> list[str]:
        return [f.code for f in lint(INITIALIZE.format(config=config), str(tmp_path / "train.py"))]

    assert codes("ds_config.json") == ["TC207"]
    for other in (
        "pipe.json",
        "folder.json",
        "huge.json",
        "broken.json",
        "list.json",
        "none.json",
        "\0.json",
        "/dev/zero",
    ):
        assert codes(other) == []


def test_every_place_lies_in_the_text() -> None:
    for number in range(len(LOOP)):
        text = LOOP[:number] + "\n" + LOOP[number:]
        lines = text.split("\n")
        for finding in lint(text):
            line, column, end_line, end_column = finding.range
            assert 1 <= line <= len(lines)
            assert 1 <= column <= len(lines[line - 1]) + 1
            assert (line, column) < (end_line, end_column)


def test_the_tree_knows_what_ast_knows() -> None:
    file = read_python(LOOP.encode(), make_target(), "train.py")
    assert {type(node) for node in file.tree.nodes} == {type(node) for node in ast.walk(ast.parse(LOOP))}
    assert len(file.tree.nodes) == len(list(ast.walk(ast.parse(LOOP))))
