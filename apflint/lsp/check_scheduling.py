"""Keeps the open documents of one editor, schedules checks of the documents, and publishes diagnostics."""

from __future__ import annotations

import asyncio
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lsprotocol import types

from apflint.effective_configuration import Effective
from apflint.load.source_text import Source
from apflint.lsp.protocol_conversion import is_untitled, line_edits, path_from_uri
from apflint.lsp.workspace import WorkspaceChecker, WorkspaceResult, apply_safe_fixes
from apflint.releases import NEWEST
from apflint.sources.discovery import SUFFIXES
from apflint.sources.file_reading import may_hold_apf
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.edit_operations import Edit
    from apflint.lsp.protocol_conversion import Encoding
    from apflint.lsp.workspace import DocumentResult

CHECK_DELAY_SECONDS = 0.2
"""Delay from the last change to the start of a check, so that several quick changes cause only one check."""
MAX_WAIT_SECONDS = 10.0
"""Maximum time that a request waits for a check."""
_EXIT_WAIT_SECONDS = 0.1
"""Maximum time that the server waits for a running check when the session ends."""
_LANGUAGES = ("json", "jsonc", "helm")


class OpenDocument(NamedTuple):
    """A document that is open in the editor."""

    uri: str
    version: int | None
    source: Source
    may_hold_apf: bool
    """Whether the document may contain an APF object. Other documents are not checked."""

    @property
    def text(self) -> str:
        """The current text in the editor."""
        return self.source.text

    @property
    def checked_text(self) -> str:
        """The text that checks read instead of the file: the text in the editor.

        The value is an empty string if the text in the editor contains no APF object.
        """
        return self.source.text if self.may_hold_apf else ""

    @property
    def is_json(self) -> bool:
        """Return whether apflint parses the document as JSON. As in `apflint check`, only the file name decides."""
        return self.uri.endswith(".json")


class Editor(Protocol):
    """Sends diagnostics and log messages to the editor. `EditorServer` implements this protocol."""

    def text_document_publish_diagnostics(self, params: types.PublishDiagnosticsParams) -> None:
        """Replace the diagnostics of a document."""

    def window_log_message(self, params: types.LogMessageParams) -> None:
        """Log a message."""


class Session:
    """The state of the connection to one editor.

    The methods must be called from the event loop of the server. Checks run in a separate thread, one check at a time.
    """

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.encoding: Encoding = "utf-16"
        self.folders: list[str] = []
        self.documents: dict[str, OpenDocument] = {}
        self.result = WorkspaceResult(Effective(build_workspace([], NEWEST)), {}, {}, ())
        """The result of the last check, or a result for a cluster without manifests before the first check."""
        self._checker = WorkspaceChecker()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apflint-check")
        self._published: dict[str, tuple[int | None, list[types.Diagnostic]]] = {}
        self._logged: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._reread = False
        self._requested = self._finished = 0
        """Number of requested checks, and number of these checks that are finished.

        One run can finish several checks.
        """
        self._progress = asyncio.Condition()

    def open_document(self, uri: str, language: str, version: int | None, text: str) -> None:
        """Add a document that the editor has opened. Documents that are neither YAML nor JSON are ignored."""
        if _may_be_manifest(uri, language):
            self._replace(uri, version, Source(uri, text))

    def change_document(self, uri: str, version: int | None, text: str) -> None:
        """Replace the text of a document."""
        if uri in self.documents:
            self._replace(uri, version, Source(uri, text))

    def close_document(self, uri: str) -> None:
        """Remove a document that the editor has closed. Later checks read the file from disk instead."""
        document = self.documents.pop(uri, None)
        if document is not None and (document.may_hold_apf or path_from_uri(uri) is not None):
            self.schedule_check(reread=document.may_hold_apf)

    def schedule_check(self, *, reread: bool = False) -> None:
        """Schedule a check of all directories and documents, after a short delay.

        If `reread` is true, the check reads settings and files from disk again.
        """
        self._requested += 1
        self._reread = self._reread or reread
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(CHECK_DELAY_SECONDS, self._start_check)

    def effective(self, uri: str) -> Effective:
        """Return the effective configuration of the cluster or directory to which a document belongs.

        If the document has not been checked, return the configuration of the first open directory.
        """
        document = self.result.documents.get(uri)
        return document.directory.effective if document is not None else self.result.effective

    def current_result(self, uri: str) -> DocumentResult | None:
        """Return the result of the last check of a document, or None if the document changed after the check."""
        document, result = self.documents.get(uri), self.result.documents.get(uri)
        return result if result is not None and document is not None and result.source.text == document.text else None

    async def checked_result(self, uri: str) -> DocumentResult | None:
        """Wait for the check of a document and return its result.

        Return None if the document contains no APF object, or if the check of its current text takes too long.
        """
        document = self.documents.get(uri)
        if document is None or not document.may_hold_apf:
            return None
        await self.wait_for_checks()
        return self.current_result(uri)

    async def wait_for_checks(self) -> None:
        """Wait until a check of the current documents has finished, but at most `MAX_WAIT_SECONDS`."""
        target = self._requested
        if self._timer is not None:
            self._timer.cancel()
            self._start_check()
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_WAIT_SECONDS), self._progress:
                await self._progress.wait_for(lambda: self._finished >= target)

    async def fix_document(self, result: DocumentResult) -> tuple[Edit, ...]:
        """Return the edits that apply all safe fixes of a document.

        Return () if no fix applies, or if the document changes in the meantime.
        """
        document = self.documents.get(result.uri)
        text = await asyncio.get_running_loop().run_in_executor(self._executor, apply_safe_fixes, result)
        if text is None or self.documents.get(result.uri) is not document:
            return ()
        return line_edits(result.source.text, text)

    def close(self) -> bool:
        """Cancel checks that have not started. Return False if a check is still running."""
        idle = self._executor.submit(int)
        try:
            idle.result(_EXIT_WAIT_SECONDS)
        except TimeoutError:
            return False
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)
        return True

    def _replace(self, uri: str, version: int | None, source: Source) -> None:
        previous = self.documents.get(uri)
        document = OpenDocument(uri, version, source, may_hold_apf(source.text.encode("utf-8", "replace")))
        self.documents[uri] = document
        hides_file = previous is None and path_from_uri(uri) is not None
        if document.may_hold_apf or hides_file or (previous is not None and previous.may_hold_apf):
            self.schedule_check(reread=previous is None and document.may_hold_apf)

    def _start_check(self) -> None:
        self._timer = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._check())

    async def _check(self) -> None:
        number, reread, self._reread = self._requested, self._reread, False
        checked, folders = dict(self.documents), tuple(self.folders)
        texts = {uri: document.checked_text for uri, document in checked.items()}
        try:
            self.result = await asyncio.get_running_loop().run_in_executor(
                self._executor, lambda: self._checker.check(folders, texts, self.encoding, reread=reread)
            )
            self._publish(self.result, checked)
        except Exception:  # noqa: BLE001  # the check of the next change may succeed
            bug = "The check failed. This is a bug in apflint, please report it."
            self._log(types.MessageType.Error, f"{bug}\n{traceback.format_exc()}")
        finally:
            self._task = None
            self._finished = number
            async with self._progress:
                self._progress.notify_all()
            if self._finished != self._requested and self._timer is None:
                self._start_check()

    def _publish(self, result: WorkspaceResult, checked: Mapping[str, OpenDocument]) -> None:
        """Publish the diagnostics that have changed, except for documents that the user has edited during the check.

        Publish the diagnostics of open documents last. The editor may spell the URI of a file differently from apflint,
        and treat both URIs as one file. If apflint cleared the diagnostics of its own URI after publishing diagnostics
        for the editor's URI, the editor would remove the new diagnostics.
        """
        opened = {uri for uri, document in checked.items() if document.checked_text}
        for uri in sorted({*result.diagnostics, *opened, *self._published}, key=lambda uri: (uri in opened, uri)):
            current, document = self.documents.get(uri), checked.get(uri)
            if current is not None and (document is None or document.checked_text != current.checked_text):
                continue
            version = document.version if current is not None and document is not None else None
            diagnostics = result.diagnostics.get(uri, [])
            if (version, diagnostics) != self._published.get(uri):
                params = types.PublishDiagnosticsParams(uri, diagnostics, version)
                self.editor.text_document_publish_diagnostics(params)
            if diagnostics or uri in opened:
                self._published[uri] = version, diagnostics
            else:
                self._published.pop(uri, None)
        for note in result.notes:
            if note not in self._logged:
                self._log(types.MessageType.Warning, note)
        self._logged = set(result.notes)

    def _log(self, severity: types.MessageType, message: str) -> None:
        self.editor.window_log_message(types.LogMessageParams(severity, message))


def _may_be_manifest(uri: str, language: str) -> bool:
    """Return whether a document may be a manifest, according to its file name or its language in the editor."""
    if path_from_uri(uri) is None and not is_untitled(uri):
        return False  # for example, the old version of a file in a diff view
    return uri.endswith(SUFFIXES) or "yaml" in language.lower() or language.lower() in _LANGUAGES
