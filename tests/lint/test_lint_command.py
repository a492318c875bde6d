"""``dsgen lint`` from outside: exit codes, forms of output, files and folders, hostile files, what a start loads."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsgen.cli import main

ROOT = Path(__file__).resolve().parents[2]
GOOD = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}\n'
WARNED = '{\n  "train_batch_size": 8,\n  "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}\n}\n'
BROKEN = '{\n  "fp16": {"enabled": true},\n\t"bf16": {"enabled": true},\n  "train_batch_size": 8\n}\n'


def run(*args: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = main(["lint", *map(str, args)])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {"good.json": GOOD, "warned.json": WARNED, "broken.json": BROKEN}.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_exit_codes(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        ("good.json",): 0,
        ("warned.json",): 1,
        ("warned.json", "--fail-on", "error"): 0,
        ("broken.json", "--fail-on", "error"): 1,
        ("broken.json", "--fail-on", "never"): 0,
        ("good.json", "broken.json"): 1,
        ("missing.json",): 2,
        ("good.json", "missing.json"): 2,
    }
    for (name, *flags), code in expected.items():
        args = [files / word if word.endswith(".json") else word for word in flags]
        assert run(files / name, *args, capsys=capsys)[0] == code, (name, flags)


@pytest.mark.parametrize(
    "flags",
    [
        ["--deepspeed", "new"],
        ["--world-size", "0"],
        ["--world-size", "two"],
        ["--loaded-by", "me"],
        ["--format", "xml"],
        ["--fail-on", "info"],
    ],
)
def test_bad_flags_are_exit_2_without_a_traceback(
    files: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(files / "good.json", *flags, capsys=capsys)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    assert flags[1] in err


def test_text_shows_the_line_with_a_caret(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(files / "broken.json", capsys=capsys)
    lines = out.splitlines()
    assert re.fullmatch(r".*broken\.json:2:23: error: fp16 and bf16 are both on.* \[DS401 fp16-and-bf16\]", lines[0])
    assert lines[1] == '    "fp16": {"enabled": true},'
    assert lines[2] == " " * 24 + "^^^^"
    assert lines[3] == "  see 3:11: the other one"
    assert lines[4].startswith("  help: keep one")
    assert lines[-1] == "1 file checked: 1 error"


def test_json_is_the_contract(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(files / "broken.json", files / "warned.json", "--format", "json", capsys=capsys)
    report = json.loads(out)
    assert report.keys() == {"version", "files", "findings"}
    assert (report["version"], report["files"]) == (1, 2)
    both, offload = report["findings"]
    place = {"line": 2, "column": 23, "end_line": 2, "end_column": 27}
    assert both == {
        "file": str(files / "broken.json"),
        **place,
        "code": "DS401",
        "rule": "fp16-and-bf16",
        "severity": "error",
        "message": both["message"],
        "help": both["help"],
        "path": ["fp16", "enabled"],
        "related": [
            {
                "file": str(files / "broken.json"),
                **{"line": 3, "column": 11, "end_line": 3, "end_column": 20},
                "message": "the other one",
            }
        ],
        "fix": None,
    }
    assert offload["fix"]["safe"] is False
    assert offload["fix"]["edits"] == [{"line": 3, "column": 35, "end_line": 3, "end_column": 71, "text": ""}]


def test_github_commands_escape_what_they_must(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a,b%.json"
    path.write_text(BROKEN, "utf-8")
    code, out, _ = run(path, "--format", "github", capsys=capsys)
    assert code == 1
    (line,) = out.splitlines()
    head, _, message = line.removeprefix("::").partition("::")
    assert head.startswith("error file=")
    assert "a%2Cb%25.json,line=2,endLine=2,title=DS401 fp16-and-bf16,col=23,endColumn=26" in head
    assert "%0Ahelp%3A" not in message
    assert "%0Ahelp: keep one" in message


def test_advice_is_shown_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"train_batch_size": 8, "disable_allgather": true}', "utf-8")
    assert run(path, capsys=capsys)[:2] == (0, "1 file checked: no findings\n")
    code, out, _ = run(path, "--info", capsys=capsys)
    assert code == 0
    assert "info: 'disable_allgather' does nothing" in out


def test_a_folder_is_searched_for_what_looks_like_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = {
        "a.json": BROKEN,
        "deep/er/b.json": '{"zero_optimization": {"stage": 9}',
        "c.hjson": "fp16: {}\ntrain_batch_size: 0",
    }
    ours["f.yaml"] = "zero_optimization: {stage: 9}"
    ours["one_line.json"] = '{"fp16": {"enabled": 3}, "gradient_clipping": "1", "train_batch_size": 1}'
    others = {
        "package.json": '{"name": "x"}',
        "nested.json": '{"train": {\n    "train_batch_size": 0}}',
        "listed.json": '[{"train_batch_size": 0}]',
        "trainer.json": '{"deepspeed": {"zero_optimization": {"stage": 9}}}',
        "accelerate.json": '{"compute_environment": "LOCAL_MACHINE", "train_batch_size": 0}',
        "node_modules/d.json": BROKEN,
        ".git/e.json": BROKEN,
        "f.toml": "zero_optimization = 9",
        "binary.json": "\x00\x01",
    }
    for name, text in (ours | others).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "large.json").write_text('{"train_batch_size": [' + "1," * 2**20 + "1]}", "utf-8")
    code, out, _ = run(tmp_path, "--format", "json", capsys=capsys)
    report = json.loads(out)
    assert code == 1
    assert {Path(finding["file"]).relative_to(tmp_path).as_posix() for finding in report["findings"]} == set(ours)
    assert report["files"] == len(ours)


def test_a_file_is_checked_once(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(files, files / "broken.json", files / "." / "broken.json", "--format", "json", capsys=capsys)
    assert json.loads(out)["files"] == 3


def test_a_named_file_of_a_kind_without_rules_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.toml"
    path.write_text("", "utf-8")
    code, _, err = run(path, capsys=capsys)
    assert code == 2
    assert "no rules for this kind" in err


HOSTILE: dict[str, bytes] = {
    "empty, which hjson reads as {}": b"",
    "deep": b"[" * 500_000,
    "deep objects": b'{"a":' * 100_000,
    "huge number": b'{"train_batch_size": ' + b"9" * 5000 + b"}",
    "huge exponent": b'{"train_batch_size": 1e99999}',
    "lone surrogate": rb'{"train_batch_size": 8, "\ud800": "\udfff", "fp16": {"\ud800": 1}}',
    "nul": b'{"train_batch_size": 8, "a": "\x00"}',
    "bom": b'\xef\xbb\xbf{"train_batch_size": 8}',
    "utf-16": '{"train_batch_size": 8}'.encode("utf-16"),
    "utf-16 without a mark": '{"train_batch_size": 8}'.encode("utf-16-le"),
    "latin-1": b'{"a": "\xe9"}',
    "crlf": b'{\r\n  "train_batch_size": "8"\r\n}\r\n',
    "cr": b'{\r"train_batch_size": "8"\r}',
    "duplicates": b'{"fp16": 1, "fp16": {}, "fp16": {"enabled": 1, "enabled": 2}}',
    "one long line": b'{"train_batch_size": 8' + b', "a": 1' * 50_000 + b', "gradient_clipping": "1"}',
    "many findings": b"{" + b",".join(b'"zero_optimisation%d": 1' % n for n in range(500)) + b"}",
    "wrong all over": b'{"zero_optimization": [], "fp16": 3, "optimizer": "x", "scheduler": true, "bf16": [[]]}',
    "types in params": b'{"optimizer": {"type": [], "params": 5}, "scheduler": {"type": {}, "params": []}}',
    "nan": b'{"train_batch_size": NaN, "gradient_clipping": Infinity, "fp16": {"loss_scale": -Infinity}}',
    "list": b"[1, 2]",
    "scalar": b"true",
    "50 MB": b'{"a": [' + b"1," * (25 << 20),
}


@pytest.mark.parametrize("form", ["text", "json", "github"])
@pytest.mark.parametrize("loaded_by", ["deepspeed", "transformers"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_give_findings_not_tracebacks(
    name: str, loaded_by: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ds.json"
    path.write_bytes(HOSTILE[name])
    flags = ["--loaded-by", loaded_by, "--deepspeed", "0.19.8", "--world-size", "8", "--info", "--format", form]
    code, out, err = run(path, *flags, capsys=capsys)
    assert code == (0 if name == "bom" and loaded_by == "deepspeed" else 1), out
    assert err == ""
    if form == "json":
        for finding in json.loads(out)["findings"]:
            assert finding["line"] >= 1
            assert finding["column"] >= 1


def test_output_survives_a_terminal_that_cannot_show_it(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_bytes(HOSTILE["lone surrogate"])
    ran = start(str(path), PYTHONIOENCODING="ascii")
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert "ud800" in ran.stdout


def start(*args: str, code: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-c", code] if code else ["-m", "dsgen", "lint"]), *args]
    environment: dict[str, Any] = {"PATH": "", "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


# Cold start is a feature: what one lint of one JSON file may not load.
NOT_FOR_LINT = (
    {"torch", "deepspeed", "transformers", "accelerate", "numpy", "hjson", "pydantic"}
    | {"jsonschema", "yaml", "jinja2", "rich", "difflib", "asyncio", "unittest", "multiprocessing", "typing_extensions"}
    | {"dsgen.planner", "dsgen.spec", "dsgen.memory", "dsgen.smoke", "dsgen.shapes", "dsgen.plan", "dsgen.hardware"}
    | {"dsgen.formats", "dsgen.legality", "dsgen.facts.gpus", "dsgen.facts.models", "dsgen.lint.python"}
)


@pytest.mark.parametrize("text", [GOOD, BROKEN])
def test_one_file_loads_nothing_heavy(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    code = "import sys; from dsgen.cli import main; main(['lint', sys.argv[1]]); print(*sys.modules, file=sys.stderr)"
    ran = start(str(path), code=code)
    loaded = set(ran.stderr.split())
    assert "dsgen.lint.run" in loaded
    assert loaded & NOT_FOR_LINT == set()
    assert not [name for name in loaded if name.startswith("dsgen.lint.rules.") and ".deepspeed" not in name]
