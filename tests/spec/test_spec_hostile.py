"""Specs that nobody should write, one file each in hostile/, with what must be said beside them.

A line of NAME.errors.txt stands for one problem, in order: the parts between bars must occur in it.
{file} is the path as it was given. To add a case, add the two files.
"""

import codecs
import os
import threading
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest

from dsgen.errors import InputError
from dsgen.spec.faults import MOST
from dsgen.spec.read import read_spec, spec_from_text

FOLDER = Path(__file__).parent / "hostile"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
GOOD = b"model: llama-2-7b\nhardware: {gpu: h100}\n"


def refused(path: Path | str) -> InputError:
    with pytest.raises(InputError) as caught:
        read_spec(str(path))
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize("case", CASES)
def test_each_mistake_is_named_with_its_place_and_a_cure(case: str) -> None:
    path = FOLDER / f"{case}.yaml"
    problems = refused(path).problems
    expected = (FOLDER / f"{case}.errors.txt").read_text(encoding="utf-8").splitlines()
    assert len(problems) == len(expected), "\n".join(map(str, problems))
    for problem, line in zip(problems, expected, strict=True):
        said = str(problem)
        for part in line.split(" | "):
            assert part.replace("{file}", str(path)) in said
        if line[0].isdigit():
            assert said.startswith(f"{path}:{line.split(' | ')[0]}")
        assert len(said) < 1000
        assert said.replace("\n  help: ", "").isprintable()


def test_the_folder_is_not_found_empty() -> None:
    assert len(CASES) >= 40
    assert {path.name.split(".")[0] for path in FOLDER.iterdir()} == set(CASES)


def test_fifty_megabytes_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    with open(path, "wb") as file:
        file.truncate(50 * 2**20)
    tracemalloc.start()
    error = refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(error) == f"{path}: too large for a spec: 50.0 MiB; the limit is 1.00 MiB"
    assert peak < 8 * 2**20


def test_a_pipe_is_read_within_bounds(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def pour() -> None:
        try:
            with open(pipe, "wb") as file:
                for _ in range(100):
                    file.write(b"#" * 2**20)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=pour)
    writer.start()
    error = refused(pipe)
    writer.join(timeout=10)
    assert "too large for a spec" in str(error)
    assert not writer.is_alive()


def test_a_device_without_end_is_read_within_bounds() -> None:
    assert "too large for a spec" in str(refused("/dev/zero"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert str(refused(tmp_path / "spec.yaml")) == f"{tmp_path}/spec.yaml: no such file"


def test_a_folder_names_the_spec_in_it(tmp_path: Path) -> None:
    assert str(refused(tmp_path)) == f"{tmp_path}: this is a folder, not a spec"
    (tmp_path / "spec.yaml").write_bytes(GOOD)
    assert f"did you mean {tmp_path}/spec.yaml?" in str(refused(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.touch(mode=0o000)
    assert str(refused(path)) == f"{path}: cannot be read: Permission denied"


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_a_path_that_no_file_can_have(path: str) -> None:
    assert "cannot be read" in str(refused(path))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD + b"# caf\xe9\n", ":3:6: not UTF-8: byte 0xe9 at offset 45"),
        (codecs.BOM_UTF8 + GOOD + b"\xff", ":3:1: not UTF-8: byte 0xff at offset 43"),
        (GOOD.decode().encode("utf-16"), ": this is UTF-16, not UTF-8"),
        (GOOD.decode().encode("utf-32"), ": this is UTF-32, not UTF-8"),
        (GOOD.decode().encode("utf-16-le"), ":1:2: character U+0000 has no place in a spec"),
        (GOOD + b"\xed\xa0\x80", ":3:1: not UTF-8: byte 0xed"),
        (GOOD + b"# \x1b[31m", ":3:3: character U+001B has no place in a spec"),
        (GOOD + "# \u2028 x\x85".encode(), ":3:3: character U+2028 has no place in a spec"),
        (b"\x80\x02}q\x00X\x05", ":1:1: not UTF-8: byte 0x80 at offset 0"),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(data)
    assert str(refused(path)).startswith(f"{path}{said}")


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(codecs.BOM_UTF8 + GOOD.replace(b"\n", b"\r\n"))
    spec = read_spec(str(path))
    assert (spec.place("model").line, spec.place("model").column) == (1, 8)
    assert (spec.place("hardware", "gpu").line, spec.place("hardware", "gpu").column) == (2, 17)


def test_an_alias_bomb_is_refused_at_its_first_alias() -> None:
    levels = "abcdefghij"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]\n" for below, name in pairwise(levels)
    )
    with pytest.raises(InputError, match=r"2:8: aliases are not used in a spec"):
        spec_from_text(bomb)


def repeated(unit: str, size: int = 2**18) -> str:
    """A quarter of what may be read, to keep the everyday run short."""
    return unit * (size // len(unit))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (repeated("["), "nested more than 32 levels deep"),
        (repeated("{a: "), "nested more than 32 levels deep"),
        (repeated("- "), "nested more than 32 levels deep"),
        (repeated("? "), "nested more than 32 levels deep"),
        ("".join(" " * depth + "-\n" for depth in range(1000)), "nested more than 32 levels deep"),
        (GOOD.decode() + "".join(f"k{at}: 1\n" for at in range(60_000)), "more than 4000 keys and values"),
        (GOOD.decode() + "x: [" + repeated("a,"), "more than 4000 keys and values"),
        (GOOD.decode() + "".join(f"k{at}: 1\n" for at in range(1900)), f"and {1900 - MOST} more problems"),
        ("model: " + repeated("a"), "has no hardware"),
        ("model: gpt2\n" + repeated("  a\n"), "has no hardware"),
        ("model: >\n" + repeated("  a\n"), "a value of several lines"),
        ('model: "' + repeated("\\x41") + '"', "has no hardware"),
        (GOOD.decode() + "memory_budget: " + repeated("9"), "not a number"),
        ("%YAML " + repeated("9"), "not valid YAML"),
        (repeated("#\n"), "the spec is empty"),
        (repeated("\n"), "the spec is empty"),
        (repeated(":"), "not valid YAML"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_much_of_anything_ends_soon(text: str, said: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError) as caught:
        spec_from_text(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 10_000
    # Generous, for busy machines: a quiet one takes a tenth.
    assert time.process_time() - started < 10
