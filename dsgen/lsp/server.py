"""The language server: what editors ask, answered with what the linter knows. Nothing is executed, nothing fetched."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from dsgen import __version__
from dsgen.lsp import protocol
from dsgen.lsp.actions import FIX_ALL, QUICK_FIX, actions
from dsgen.lsp.analysis import target_of
from dsgen.lsp.complete import completions
from dsgen.lsp.hover import hover
from dsgen.lsp.session import PAUSE, Session

# Files of a project by which its configs are judged.
_PROJECT_FILES = (
    "**/{pyproject.toml,uv.lock,poetry.lock,pdm.lock,pylock.toml}",
    "**/{requirements,constraints}*.txt",
    "**/{environment,conda}*.{yml,yaml}",
    "**/*baseline*.json",
)
# What begins a key or a value.
_TRIGGERS = ['"', "'", ":", "{", ","]


class Server(LanguageServer):
    """pygls's server, without its dialogs."""

    def report_server_error(self, error: Exception, source: Any) -> None:  # noqa: ARG002 - the signature is pygls's
        """What goes wrong is written down where it disturbs nobody."""
        message = f"dsgen: {type(error).__name__}: {error}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))


def make_server() -> tuple[Server, "Ending"]:
    """A server with all its answers, and what will be known of its end."""
    server = Server("dsgen", f"v{__version__}", text_document_sync_kind=types.TextDocumentSyncKind.Full, max_workers=2)
    session, ending = Session(server), Ending()
    _follow_documents(server, session)
    _answer(server, session)

    def shutdown(_params: None) -> None:
        ending.was_announced = True
        session.end()

    server.feature(types.SHUTDOWN)(shutdown)
    return server, ending


class Ending:
    """Whether the client took its leave before it left, as the protocol asks."""

    was_announced = False

    @property
    def exit_code(self) -> int:
        return 0 if self.was_announced else 1


def _follow_documents(server: Server, session: Session) -> None:
    """Documents are looked at when they are opened, changed and saved, and when their project changes."""

    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        session.look(params.text_document.uri, project=True)

    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        session.look(params.text_document.uri, after=PAUSE)

    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        # What is saved may be what other documents are judged by.
        if params.text_document.uri in server.workspace.text_documents:
            session.look_at_all()

    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)

    async def watched(_params: types.DidChangeWatchedFilesParams) -> None:
        session.look_at_all()

    async def initialized(_params: types.InitializedParams) -> None:
        workspace = server.client_capabilities.workspace
        files = workspace.did_change_watched_files if workspace else None
        if files and files.dynamic_registration:
            watchers = [types.FileSystemWatcher(pattern) for pattern in _PROJECT_FILES]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = types.Registration("dsgen-project", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            server.client_register_capability(types.RegistrationParams([registration]))

    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(saved)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(watched)
    server.feature(types.INITIALIZED)(initialized)


def _answer(server: Server, session: Session) -> None:
    """Questions about a place; what cannot be answered is no answer, and a line in the log."""

    async def hovered(params: types.HoverParams) -> types.Hover | None:
        text = session.text(params.text_document.uri)
        if text is None:
            return None
        seen = session.seen(params.text_document.uri, text)
        offset = text.positions.offset((params.position.line, params.position.character))

        def work() -> Any:
            return hover(text, offset, target_of(text), seen.findings if seen else ())

        shown = await _tried(session, work, "hover")
        return protocol.hover(shown, text) if shown else None

    async def completed(params: types.CompletionParams) -> types.CompletionList | None:
        text = session.text(params.text_document.uri)
        if text is None:
            return None
        offset = text.positions.offset((params.position.line, params.position.character))
        is_known = session.is_ours(params.text_document.uri)

        def work() -> Any:
            if not (is_known or text.is_ours or text.may_become_ours):
                return []
            return completions(text, offset, target_of(text))

        offers = await _tried(session, work, "complete")
        return protocol.completion(offers, text, snippets=_takes_snippets(server)) if offers else None

    async def acted(params: types.CodeActionParams) -> list[types.CodeAction | types.Command] | None:
        uri = params.text_document.uri
        analysis = await session.analysis(uri)
        if analysis is None or not analysis.findings:
            return None
        text = analysis.text
        start = text.positions.offset((params.range.start.line, params.range.start.character))
        end = text.positions.offset((params.range.end.line, params.range.end.character))
        only = tuple(str(getattr(kind, "value", kind)) for kind in params.context.only or ())

        def work() -> Any:
            return list(actions(analysis, start, end, target_of(text), only))

        found = await _tried(session, work, "offer actions")
        versioned = _takes_versions(server)
        return [protocol.code_action(action, text, uri, versioned=versioned) for action in found or ()]

    server.feature(types.TEXT_DOCUMENT_HOVER)(hovered)
    options = types.CompletionOptions(trigger_characters=_TRIGGERS)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(completed)
    kinds = types.CodeActionOptions(code_action_kinds=[QUICK_FIX, FIX_ALL])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(acted)


async def _tried(session: Session, work: Callable[[], Any], doing: str) -> Any:
    try:
        return await session.run(work)
    except Exception as error:
        session.log_error(error, doing)
        return None


def _takes_snippets(server: Server) -> bool:
    document = server.client_capabilities.text_document
    item = document.completion.completion_item if document and document.completion else None
    return bool(item and item.snippet_support)


def _takes_versions(server: Server) -> bool:
    workspace = server.client_capabilities.workspace
    edit = workspace.workspace_edit if workspace else None
    return bool(edit and edit.document_changes)


def serve(address: tuple[str, int] | None = None) -> int:
    """Speaks with one editor until it leaves: over standard input and output, or over TCP.

    Returns:
        The exit code that the protocol asks for: 1 where the editor left without a word.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)
    server, ending = make_server()
    # A thread waits for input and cannot be woken: Ctrl-C ends the process, as it ends any other.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if address is not None:
        server.start_tcp(*address)
        return ending.exit_code
    # Whatever prints must not get between the messages; and pygls closes what it wrote to.
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr
    server.start_io(sys.stdin.buffer, messages)
    return ending.exit_code
