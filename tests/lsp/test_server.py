"""The server as a process, spoken to as an editor speaks: from the first message to the last."""

import asyncio
import itertools
import json
import random
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="pip install 'dsgen[lsp]'")

from console import dsgen, environment
from editor import CAPABILITIES, PATIENCE, Editor, Sessions, editor, soon
from hostile_texts import TEXTS, mutated
from lsprotocol import types


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    made = Sessions(tmp_path_factory.mktemp("workspace"))
    yield made
    made.close()


BAD = """\
{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": "true",
    "stage3_max_live_parameters": 1e8
  },
  "gradient_cliping": 1.0
}
"""


def place(line: int, character: int = 0, end: int | None = None) -> types.Range:
    return types.Range(types.Position(line, character), types.Position(line, character if end is None else end))


def codes(found: list[types.Diagnostic]) -> list[int | str | None]:
    """Of what is not mere advice."""
    return [one.code for one in found if one.severity != types.DiagnosticSeverity.Hint]


def project(folder: Path, settings: str = "", pin: str = "deepspeed==0.16.4\n") -> Path:
    (folder / "pyproject.toml").write_text(f'[tool.dsgen]\nloaded-by = "deepspeed"\n{settings}', "utf-8")
    (folder / "requirements.txt").write_text(pin, "utf-8")
    return folder


def test_from_a_bad_config_to_a_clean_one(sessions: Sessions, tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        found = await one.open("ds_config.json", BAD)
        (tmp_path / "ds_config.json").write_text(BAD, "utf-8")
        told = json.loads(dsgen("lint", "--info", "--format", "json", "ds_config.json", cwd=tmp_path).stdout)
        assert len(found) >= 3
        assert [
            (one.code, one.range.start.line + 1, one.range.start.character + 1, one.message.partition("\n")[0])
            for one in found
        ] == [(one["code"], one["line"], one["column"], one["message"]) for one in told["findings"]]
        assert any("DeepSpeed 0.16.4 (requirements.txt)" in one.message for one in found)
        severity = {"error": 1, "warning": 2, "info": 4}
        assert [one.severity for one in found] == [severity[one["severity"]] for one in told["findings"]]
        assert all(one.source == "dsgen" for one in found)
        page = found[0].code_description
        assert page is not None
        assert f'"{found[0].code}"' in Path(page.href.removeprefix("file://")).read_text("utf-8")

        hovered = await one.hover("ds_config.json", 4, 8)
        assert hovered is not None
        assert isinstance(hovered.contents, types.MarkupContent)
        assert "Default: `false` at stage 2 in DeepSpeed 0.16.4" in hovered.contents.value
        assert hovered.range == place(4, 4, 18)
        offered = await one.complete("ds_config.json", 3, 14)
        assert [item.label for item in offered] == ["0", "1", "2", "3"]

        (safe,) = [one for one in await one.actions("ds_config.json", place(4, 24)) if one.is_preferred]
        assert (safe.title, safe.kind) == ("Write true", "quickfix")
        text = one.applied("ds_config.json", safe)
        assert text == BAD.replace('"true"', "true")
        assert [one.code for one in await one.change("ds_config.json", text)] == [
            one.code for one in found if one.range.start.line != 4
        ]
        (unsafe,) = [a for a in await one.actions("ds_config.json", place(7, 5)) if "can change" in a.title]
        assert not unsafe.is_preferred
        good = '{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}'
        assert await one.change("ds_config.json", good) == []

        one.client.text_document_did_close(types.DidCloseTextDocumentParams(one.document("ds_config.json")))
        assert await one.found("ds_config.json") == []
        assert types.WORKSPACE_DID_CHANGE_WATCHED_FILES in one.registered

    project(tmp_path)
    sessions.run(tmp_path, session)


def test_all_safe_fixes_at_once_are_those_of_the_command(sessions: Sessions, tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        bad = BAD.replace('"stage": 2', '"stage": "2"').replace("\n", "\r\n")
        await one.open("ds_config.json", bad)
        (action,) = await one.actions("ds_config.json", place(0), "source.fixAll")
        assert action.kind == "source.fixAll.dsgen"
        text = one.applied("ds_config.json", action)
        (tmp_path / "ds_config.json").write_bytes(bad.encode())
        dsgen("lint", "--fix", "ds_config.json", cwd=tmp_path)
        assert text.encode() == (tmp_path / "ds_config.json").read_bytes()
        left = await one.change("ds_config.json", text)
        assert codes(left)
        assert await one.actions("ds_config.json", place(0), "source.fixAll") == []
        assert await one.actions("ds_config.json", place(0), "refactor") == []

    project(tmp_path)
    sessions.run(tmp_path, session)


async def columns(one: Editor, encoding: str) -> None:
    # One, two and four bytes; one and two UTF-16 units.
    note = "aé\U0001f600"
    text = f'{{"_{note}": "{note}", "train_batch_size": 8, "own": 1}}'
    before = text[: text.index('"own"')]
    units = len(before.encode()) if encoding == "utf-8" else len(before.encode("utf-16-le")) // 2
    assert units > len(before)
    assert one.initialized is not None
    assert one.initialized.capabilities.position_encoding == encoding
    (found,) = await one.open("ds_config.json", text)
    assert found.range == place(0, units, units + len('"own"'))
    hovered = await one.hover("ds_config.json", 0, units - len('train_batch_size": 8, '))
    assert hovered is not None
    assert hovered.range is not None
    assert hovered.range.end.character - hovered.range.start.character == len('"train_batch_size"')
    assert await one.hover("ds_config.json", 0, units + 1) is not None


def test_columns_are_utf_16_where_nothing_is_agreed_on(sessions: Sessions, tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        await columns(one, "utf-16")

    project(tmp_path)
    sessions.run(tmp_path, session)


def test_columns_are_in_the_units_agreed_on(tmp_path: Path) -> None:
    general = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf8])

    async def session() -> None:
        async with editor(project(tmp_path), types.ClientCapabilities(general=general)) as one:
            await columns(one, "utf-8")

    asyncio.run(session())


def test_a_project_is_followed(sessions: Sessions, tmp_path: Path) -> None:
    config = '{"train_batch_size": 8, "own": 1, "aio": {"thread_count": 4}}'

    async def session(one: Editor) -> None:
        assert codes(await one.open("sub/ds_config.json", config)) == ["DS110"]
        project(tmp_path, '[tool.dsgen.lint]\nignore = ["DS110"]\n')
        one.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([]))
        (renamed,) = await one.found("sub/ds_config.json")
        assert "intra_op_parallelism" in renamed.message
        (tmp_path / "pyproject.toml").write_text("[tool.dsgen]\nseverity = 1\n", "utf-8")
        saved = types.DidSaveTextDocumentParams(one.document("sub/ds_config.json"))
        one.client.text_document_did_save(saved)
        (problem,) = await one.found("sub/ds_config.json")
        assert "pyproject.toml:2:1: 'severity' is no key of [tool.dsgen]" in problem.message
        assert await one.hover("sub/ds_config.json", 0, 4) is not None
        project(tmp_path, '[tool.dsgen.lint]\nbaseline = "known.json"\n')
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "ds_config.json").write_text(config, "utf-8")
        dsgen("lint", "sub", "--write-baseline", "known.json", cwd=tmp_path)
        one.client.text_document_did_save(saved)
        assert await one.found("sub/ds_config.json") == []

    project(tmp_path, pin="deepspeed==0.16.3\n")
    sessions.run(tmp_path, session)


def test_what_is_no_config_is_left_alone_and_what_was_one_stays_one(sessions: Sessions, tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        assert await one.open("package.json", '{"name": "x", "zero": 1') == []
        assert await one.complete("package.json", 0, 1) == ()
        assert codes(await one.open("a.json", '{"train_batch_size": 8, "own": 1}')) == ["DS110"]
        assert codes(await one.change("a.json", '{"own": 1, "tra')) == ["DS101"]
        offered = await one.complete("a.json", 0, 15)
        assert offered[0].label == "train_batch_size"
        assert offered[0].text_edit is not None
        assert offered[0].text_edit.new_text == '"train_batch_size": $1'
        # A file that is new is one by its name.
        assert await one.open("ds_new.json", "") == []
        assert len(await one.complete("ds_new.json", 0, 0)) > 40
        large = '{"train_batch_size": 8, "x": "' + "y" * (1 << 20) + '"}'
        assert await one.open("large.json", large) == []
        assert await one.hover("large.json", 0, 3) is None
        assert any("large.json is larger than 256 KiB" in line for line in one.logged)
        one.send_open("untitled:Untitled-1", '{"train_batch_size": 8, "own": 1}')
        shown = await soon(one.shown.get())
        assert (shown.uri, len(shown.diagnostics)) == ("untitled:Untitled-1", 1)

    project(tmp_path)
    sessions.run(tmp_path, session)


def test_what_belongs_to_a_mistake_is_shown_where_it_is(sessions: Sessions, tmp_path: Path) -> None:
    sizes = '{"train_batch_size": 96, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 8}'
    started = "# \U0001f600\ntorchrun --nproc_per_node=4 train.py --deepspeed_config ds_config.json\n"

    async def session(one: Editor) -> None:
        found = await one.open("ds_config.json", sizes)
        (wrong,) = [each for each in found if each.code == "DS201"]
        places = {related.location.uri: related.location.range for related in wrong.related_information or ()}
        assert set(places) == {one.uri("ds_config.json"), one.uri("run.sh")}
        assert places[one.uri("run.sh")].start.line == 1

    project(tmp_path)
    (tmp_path / "run.sh").write_text(started, "utf-8")
    sessions.run(tmp_path, session)


def test_code_and_accelerate_files(sessions: Sessions, tmp_path: Path) -> None:
    code = """\
import deepspeed

ds_config = {"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": "true"}}
engine, *_ = deepspeed.initialize(model=model, config=ds_config)
"""
    yaml = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n  offload_param_device: cpu\n"

    async def session(one: Editor) -> None:
        assert "DS111" in {found.code for found in await one.open("train.py", code, "python")}
        (fix,) = [a for a in await one.actions("train.py", place(2, 88)) if a.is_preferred]
        assert one.applied("train.py", fix) == code.replace('"true"', "True")
        hovered = await one.hover("train.py", 2, 62)
        assert hovered is not None
        (found,) = await one.open("accelerate.yaml", yaml, "yaml")
        assert found.range.start.line == 3
        offered = await one.complete("accelerate.yaml", 4, 0)
        assert offered == ()
        await one.change("accelerate.yaml", yaml + "  off")
        offered = await one.complete("accelerate.yaml", 4, 5)
        assert "offload_optimizer_device" in {item.label for item in offered}

    project(tmp_path)
    sessions.run(tmp_path, session)


def test_a_burst_of_changes_is_looked_at_once(sessions: Sessions, tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        await one.open("ds_config.json", '{"train_batch_size": 8}')
        waiting = []
        for length in range(100):
            one.send_change("ds_config.json", f'{{"train_batch_size": 8, "{"x" * length}": 1}}')
            asked = types.HoverParams(one.document("ds_config.json"), types.Position(0, 4))
            waiting.append(asyncio.ensure_future(one.client.text_document_hover_async(asked)))
        for number in range(50):
            one.client.cancel_request(types.CancelParams(number))
        found = await one.found("ds_config.json")
        assert codes(found) == ["DS110"]
        assert "x" * 99 in found[0].message
        assert one.shown.empty()
        answered = await soon(asyncio.gather(*waiting, return_exceptions=True))
        assert any(isinstance(answer, types.Hover) for answer in answered)

    project(tmp_path)
    sessions.run(tmp_path, session)


def test_hostile_documents(sessions: Sessions, tmp_path: Path) -> None:
    rng = random.Random()

    async def session(one: Editor) -> None:
        for number, (name, text) in enumerate([*TEXTS, *itertools.islice(mutated(rng), 10)]):
            name = f"{number}-{name}"
            await one.open(name, text, {"json": "json", "yaml": "yaml"}.get(name[-4:], "python"))
            lines = text.count("\n") + 1
            line, column = rng.randrange(lines), rng.choice([0, 1, 7, 1 << 30])
            await one.hover(name, line, column)
            await one.complete(name, line, column)
            await one.actions(name, place(0, 0, 1 << 30))
        strange = [
            "",
            "x:",
            "file:",
            "file:///%00.json",
            "http://h/ds.json",
            "file://host/ds.json",
            "untitled:x",
            "\ud800",
        ]
        for uri in strange:
            one.send_open(uri, '{"train_batch_size": 8, "own": 1}')
        assert codes(await one.open("ds.json", '{"train_batch_size": 8, "own": 1}')) == ["DS110"]

    sessions.run(project(tmp_path), session)


def test_what_is_no_message_is_survived_and_hanging_up_ends_it(tmp_path: Path) -> None:
    async def session() -> int:
        one = Editor(tmp_path)
        await one.start(CAPABILITIES)
        process = one.client._server
        assert process is not None
        assert process.stdin is not None
        for body in (b"{", b"[]", b"null", b'{"method": 1}', b"\xff", b"[" * 100_000, b'{"jsonrpc": "2.0", "id": 1}'):
            process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        broken = b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": 7}}'
        process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(broken) + broken)
        assert await one.hover("ds.json", 0, 0) is None
        assert one.dialogs == []
        process.stdin.close()
        return await one.ended()

    assert asyncio.run(session()) == 1


def test_an_editor_that_leaves_without_a_word(tmp_path: Path) -> None:
    async def session() -> int:
        one = Editor(tmp_path)
        await one.start(CAPABILITIES)
        one.client.exit(None)
        return await one.ended()

    assert asyncio.run(session()) == 1


def test_over_tcp(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def session() -> None:
        command = (sys.executable, "-m", "dsgen", "lsp", "--tcp", f"127.0.0.1:{port}")
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, env=environment(), stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        assert await soon(process.stderr.readline()) == f"listening on 127.0.0.1:{port}\n".encode()
        one = Editor(tmp_path)
        for _ in range(int(PATIENCE * 20)):
            try:
                await one.client.start_tcp("127.0.0.1", port)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)
        await one.greet(CAPABILITIES)
        assert codes(await one.open("ds.json", '{"train_batch_size": 8, "own": 1}')) == ["DS110"]
        await soon(one.client.shutdown_async(None))
        one.client.exit(None)
        assert await soon(process.wait()) == 0
        await one.client.stop()

    asyncio.run(session())
