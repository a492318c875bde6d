"""An editor for tests: starts the server as a process and speaks the protocol with it, as pygls's own client does."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from console import environment
from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds for one answer on a busy machine."""
CAPABILITIES = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
    ),
    text_document=types.TextDocumentClientCapabilities(
        completion=types.CompletionClientCapabilities(
            completion_item=types.ClientCompletionItemOptions(snippet_support=True)
        )
    ),
)


async def soon(answer: Awaitable[T]) -> T:
    """The answer, within the bounds of patience."""
    return await asyncio.wait_for(answer, PATIENCE)


class Editor:
    """One editor with its server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("test", "1")
        self.shown: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.logged: list[str] = []
        self.dialogs: list[str] = []
        self.registered: list[str] = []
        self.texts: dict[str, tuple[int, str]] = {}
        self.initialized: types.InitializeResult | None = None
        self._listen()

    def _listen(self) -> None:
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.shown.put_nowait(params)

        def log(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)

        def show(params: types.ShowMessageParams) -> None:
            self.dialogs.append(params.message)

        def register(params: types.RegistrationParams) -> None:
            self.registered += [one.method for one in params.registrations]

        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(publish)
        self.client.feature(types.WINDOW_LOG_MESSAGE)(log)
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(show)
        self.client.feature(types.CLIENT_REGISTER_CAPABILITY)(register)

    async def start(self, capabilities: types.ClientCapabilities) -> None:
        command = (sys.executable, "-m", "dsgen", "lsp")
        await self.client.start_io(*command, cwd=self.folder, env=environment())
        await self.greet(capabilities)

    async def greet(self, capabilities: types.ClientCapabilities) -> None:
        asked = types.InitializeParams(capabilities=capabilities, root_uri=self.folder.as_uri())
        self.initialized = await soon(self.client.initialize_async(asked))
        self.client.initialized(types.InitializedParams())

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def open(self, name: str, text: str, language: str = "json") -> list[types.Diagnostic]:
        """Opens a document; what is found in it."""
        self.send_open(self.uri(name), text, language)
        return await self.found(name)

    def send_open(self, uri: str, text: str, language: str = "json") -> None:
        self.texts[uri] = (1, text)
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def send_change(self, name: str, text: str) -> int:
        uri = self.uri(name)
        version = self.texts[uri][0] + 1
        self.texts[uri] = (version, text)
        document = types.VersionedTextDocumentIdentifier(version=version, uri=uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return version

    async def change(self, name: str, text: str) -> list[types.Diagnostic]:
        self.send_change(name, text)
        return await self.found(name)

    async def found(self, name: str) -> list[types.Diagnostic]:
        """The next diagnostics of a document at its present version."""
        while True:
            params = await soon(self.shown.get())
            if params.uri == self.uri(name) and params.version in (None, self.texts[params.uri][0]):
                return list(params.diagnostics)

    def document(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    async def hover(self, name: str, line: int, character: int) -> types.Hover | None:
        asked = types.HoverParams(self.document(name), types.Position(line, character))
        return await soon(self.client.text_document_hover_async(asked))

    async def complete(self, name: str, line: int, character: int) -> Sequence[types.CompletionItem]:
        asked = types.CompletionParams(self.document(name), types.Position(line, character))
        found = await soon(self.client.text_document_completion_async(asked))
        return found.items if isinstance(found, types.CompletionList) else ()

    async def actions(self, name: str, place: types.Range, *only: str) -> Sequence[types.CodeAction]:
        context = types.CodeActionContext([], only=list(only) or None)
        asked = types.CodeActionParams(self.document(name), place, context)
        found = await soon(self.client.text_document_code_action_async(asked))
        return [action for action in found or () if isinstance(action, types.CodeAction)]

    def applied(self, name: str, action: types.CodeAction) -> str:
        """The text after an action, as an editor of ASCII texts makes its edits."""
        assert action.edit is not None
        assert action.edit.document_changes is not None
        (change,) = action.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        version, text = self.texts[self.uri(name)]
        assert (change.text_document.uri, change.text_document.version) == (self.uri(name), version)
        return edited(text, change.edits)

    async def stop(self) -> int:
        """Leaves as the protocol asks; the exit code."""
        await soon(self.client.shutdown_async(None))
        self.client.exit(None)
        return await self.ended()

    async def ended(self) -> int:
        process = self.client._server
        assert process is not None
        code = await soon(process.wait())
        assert process.stderr is not None
        assert (await soon(process.stderr.read())).decode() == ""
        await self.client.stop()
        return code


def edited(text: str, edits: Sequence[Any]) -> str:
    """A text of ASCII after edits of the protocol, from the last to the first."""
    assert text.isascii()
    lines = text.splitlines(keepends=True) or [""]

    def offset(position: types.Position) -> int:
        return sum(map(len, lines[: position.line])) + position.character

    for edit in sorted(edits, key=lambda one: offset(one.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


class Sessions:
    """Runs sessions of one editor after each other, with one server: starting takes longest."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._editor = Editor(folder)
        self._runner.run(self._editor.start(CAPABILITIES))

    def run(self, folder: Path, session: Callable[[Editor], Awaitable[None]]) -> None:
        """One session in a folder of its own; no dialog is shown and no error logged."""
        one = self._editor
        one.folder, one.logged, one.dialogs = folder, [], []

        async def whole() -> None:
            await session(one)
            for uri in one.texts:
                document = types.TextDocumentIdentifier(uri)
                one.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
            one.texts = {}
            # What was asked before is answered before.
            await one.hover("none.json", 0, 0)
            while not one.shown.empty():
                one.shown.get_nowait()

        self._runner.run(whole())
        assert one.dialogs == []
        assert [line for line in one.logged if "failed" in line or "Error" in line] == []

    def close(self) -> None:
        try:
            process = self._editor.client._server
            assert process is not None
            if process.returncode is None:
                assert self._runner.run(self._editor.stop()) == 0
        finally:
            self._runner.close()


@asynccontextmanager
async def editor(folder: Path, capabilities: types.ClientCapabilities = CAPABILITIES) -> AsyncIterator[Editor]:
    """An editor with a server of its own, which ends well."""
    made = Editor(folder)
    await made.start(capabilities)
    yield made
    assert await made.stop() == 0
