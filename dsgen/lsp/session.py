"""The documents that are open, what was found in them, and when each is looked at again.

All work is done by one thread beside the one that speaks with the editor, in the order in which it came: typing is
never held up, and what a newer change has overtaken is not begun.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePath
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from dsgen.lint.kinds import kind_of
from dsgen.lint.project import forget
from dsgen.lsp import protocol
from dsgen.lsp.analysis import Analysis, analyse
from dsgen.lsp.positions import Encoding
from dsgen.lsp.text import Text, name_of_language

T = TypeVar("T")

PAUSE = 0.2
"""Seconds without a change after which a text is looked at."""
_ENCODINGS: dict[str, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}


class Session:
    """One editor."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dsgen")
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, Analysis] = {}
        self._ours: set[str] = set()
        self._is_stale = True
        """Whether files of the projects may have changed since they were read."""

    def log(self, message: str, kind: types.MessageType = types.MessageType.Log) -> None:
        """A line for whoever looks into the editor's log; never a dialog."""
        self._server.window_log_message(types.LogMessageParams(kind, message))

    def log_error(self, error: BaseException, doing: str) -> None:
        """A defect of ours, for the log."""
        self.log(f"dsgen failed to {doing}: {type(error).__name__}: {error}", types.MessageType.Error)

    def text(self, uri: str) -> Text | None:
        """A document as it stands in the editor; None where it is not open, or lies nowhere that we know."""
        document = self._server.workspace.text_documents.get(uri)
        name = self._name(uri, document.language_id) if document else None
        if document is None or name is None:
            return None
        agreed = str(self._server.server_capabilities.position_encoding or "utf-16")
        encoding = _ENCODINGS.get(agreed.rpartition(".")[2].lower(), "utf-16")
        return Text(name, document.source, document.version, encoding)

    def _name(self, uri: str, language: str | None) -> str | None:
        if uri.startswith("untitled:"):
            root = self._server.workspace.root_path
            return str(PurePath(root, name_of_language(language))) if root else name_of_language(language)
        path: str | None = to_fs_path(uri)
        if not path or "\0" in path:
            return None
        return path if kind_of(path) else path + PurePath(name_of_language(language)).suffix

    async def run(self, work: Callable[[], T]) -> T:
        """Does work beside the conversation."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def look(self, uri: str, *, after: float = 0.0, project: bool = False) -> None:
        """Looks at a document after a pause, unless it changes again before; with ``project`` at its files anew."""
        self._is_stale = self._is_stale or project
        self._drop(uri)
        self._waiting[uri] = asyncio.ensure_future(self._look(uri, after))

    def look_at_all(self) -> None:
        """Looks at every document: something around them has changed."""
        for uri in list(self._server.workspace.text_documents):
            self.look(uri, project=True)

    def close(self, uri: str) -> None:
        """Forgets a document, and takes what was shown in it away."""
        self._drop(uri)
        self._ours.discard(uri)
        if self._seen.pop(uri, None):
            self._publish(uri, [], None)

    def end(self) -> None:
        """Begins nothing more."""
        for uri in list(self._waiting):
            self._drop(uri)
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _drop(self, uri: str) -> None:
        task = self._waiting.pop(uri, None)
        if task is not None:
            task.cancel()

    async def _look(self, uri: str, after: float) -> None:
        try:
            await asyncio.sleep(after)
            found = await self.analysis(uri)
            now = self._server.workspace.text_documents.get(uri)
            if found is not None and now is not None and now.version == found.text.version:
                self._publish(uri, protocol.diagnostics(found, uri), found.text.version)
        except Exception as error:
            self.log_error(error, f"look at {uri}")

    async def analysis(self, uri: str) -> Analysis | None:
        """What is found in a document now."""
        text = self.text(uri)
        if text is None:
            return None
        seen = self._seen.get(uri)
        if seen is not None and not self._is_stale and (seen.text.text, seen.text.version) == (text.text, text.version):
            return seen
        was_ours = uri in self._ours
        found = await self.run(lambda: self._analyse(text, was_ours=was_ours))
        if found.note and (seen is None or seen.note != found.note):
            self.log(found.note, types.MessageType.Info)
        if text.is_ours:
            self._ours.add(uri)
        self._seen[uri] = found
        return found

    def _analyse(self, text: Text, *, was_ours: bool) -> Analysis:
        if self._is_stale:
            self._is_stale = False
            forget()
        return analyse(text, was_ours=was_ours)

    def is_ours(self, uri: str) -> bool:
        """Whether a document was one of ours when it last could be read."""
        return uri in self._ours

    def seen(self, uri: str, text: Text) -> Analysis | None:
        """What was found in this very text, if it was looked at."""
        found = self._seen.get(uri)
        return found if found is not None and found.text.text == text.text else None

    def _publish(self, uri: str, found: list[Any], version: int | None) -> None:
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))
