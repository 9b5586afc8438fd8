"""What an editor has open, and the checks of it: when one starts, and what of its answer is shown."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from apflint.inputs.files import may_hold_apf
from apflint.load.source import Source
from apflint.lsp import addresses, positions
from apflint.lsp.actions import difference
from apflint.lsp.folders import Folders, Home, Open
from apflint.lsp.known import Known
from apflint.lsp.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.finding import Edit, Finding
    from apflint.lsp.diagnostics import Diagnostic
    from apflint.lsp.folders import Round
    from apflint.lsp.positions import Change, Encoding

DELAY = 0.2
"""Seconds without a change until a check starts: a burst of changes is one check."""
PATIENCE = 10.0
"""Seconds that an answer waits for a check."""
SMALL = 10_000
"""Characters of a document without any sign of ours that proposals are made in: it may be the beginning of one."""


class Document(NamedTuple):
    """An open document."""

    uri: str
    version: int | None
    source: Source
    ours: bool
    """Whether it may hold an object of ours."""

    @property
    def text(self) -> str:
        """The text."""
        return self.source.text

    @property
    def checked(self) -> str:
        """What a check reads: of a document without anything of ours nothing, whatever its file holds."""
        return self.source.text if self.ours else ""

    @property
    def json(self) -> bool:
        """Whether it is read as JSON."""
        return addresses.is_json(self.uri)


class Answer(NamedTuple):
    """What the last check found in a document that has not changed since."""

    document: Document
    home: Home
    diagnostics: list[Diagnostic]
    """Of the first findings, in their order: there may be more of those."""

    @property
    def source(self) -> Source:
        """The text, under the name that the findings show."""
        return self.home.checked.report.sources[self.home.name]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings."""
        return self.home.findings


class Editor(Protocol):
    """The other side."""

    def show(self, uri: str, version: int | None, diagnostics: list[Diagnostic]) -> None:
        """Shows the diagnostics of a document, all of them."""

    def say(self, severity: Literal["error", "warning", "info"], message: str) -> None:
        """Logs a message."""


class Session:
    """Lives on the loop that talks to the editor; the checks are the worker's."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.encoding: Encoding = "utf-16"
        self.folders: list[str] = []
        self.documents: dict[str, Document] = {}
        self.round: Round | None = None
        self._all = Folders()
        self._worker = Worker()
        self._spelled: dict[str, str] = {}
        self._shown: dict[str, tuple[int | None, list[Diagnostic]]] = {}
        self._told: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._running = False
        self._again = False
        self._wanted = self._done = 0
        self._waiting: list[asyncio.Future[None]] = []

    # What the editor tells.

    def opened(self, uri: str, language: str, version: int | None, text: str) -> None:
        """A document was opened; others than YAML and JSON are not kept."""
        if addresses.is_ours(uri, language):
            if (path := addresses.path(uri)) is not None:
                self._spelled[path] = uri
            self._replace(uri, version, Source(uri, text))

    def changed(self, uri: str, version: int | None, changes: Iterable[Change]) -> None:
        """A document was changed."""
        before = self.documents.get(uri)
        if before is not None:
            self._replace(uri, version, positions.changed(before.source, changes, self.encoding))

    def closed(self, uri: str) -> None:
        """A document was closed: what counts from now on is its file."""
        before = self.documents.pop(uri, None)
        if before is not None and (before.ours or addresses.path(uri) is not None):
            self.check(again=before.ours)

    def check(self, *, again: bool = False) -> None:
        """Has everything checked soon; with `again` the disk is looked at again."""
        self._wanted += 1
        self._again = self._again or again
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(DELAY, self._start)

    # What the editor asks.

    def known(self, uri: str) -> Known:
        """What is known of the cluster, for a document."""
        if self.round is None:
            return Known()
        home = self.round.homes.get(uri)
        checked = home.checked if home is not None else self.round.first
        return Known(checked.workspace.release, checked.workspace) if checked is not None else Known()

    def answer(self, uri: str) -> Answer | None:
        """What the last check found in a document; None where it has changed since."""
        document = self.documents.get(uri)
        if self.round is None or document is None or uri not in self.round.homes:
            return None
        found = Answer(document, self.round.homes[uri], self.round.diagnostics.get(uri, []))
        return found if found.source.text == document.text else None

    async def settled(self) -> None:
        """Waits until what is open now has been checked, and not longer than anybody would."""
        target = self._wanted
        if self._timer is not None:
            self._timer.cancel()
            self._start()
        while self._done < target:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await asyncio.wait_for(waiting, PATIENCE)
            except TimeoutError:
                return

    async def mended(self, answer: Answer) -> tuple[Edit, ...]:
        """The edits that make all safe fixes of a document; none where it has none, or has changed meanwhile."""

        def work() -> tuple[Edit, ...]:
            text = self._all.mended(answer.home)
            return difference(answer.source.text, text) if text is not None else ()

        edits = await self._worker.run(work)
        return edits if self.documents.get(answer.document.uri) is answer.document else ()

    def offset(self, document: Document, line: int, character: int) -> int:
        """The offset of a position."""
        return positions.offset(document.source, positions.Position(line, character), self.encoding)

    # The checks.

    def _replace(self, uri: str, version: int | None, source: Source) -> None:
        before = self.documents.get(uri)
        document = Document(uri, version, source, may_hold_apf(source.text.encode("utf-8", "replace")))
        self.documents[uri] = document
        hides_file = before is None and addresses.path(uri) is not None
        if document.ours or hides_file or (before is not None and before.ours):
            self.check(again=before is None and document.ours)

    def _start(self) -> None:
        self._timer = None
        if not self._running:
            self._running = True
            self._task = asyncio.ensure_future(self._check())

    async def _check(self) -> None:
        number, again, self._again = self._wanted, self._again, False
        documents = {uri: document.checked for uri, document in self.documents.items()}
        wanted = Open(tuple(self.folders), documents, dict(self._spelled))
        try:
            versions = {uri: document.version for uri, document in self.documents.items()}
            self.round = await self._worker.run(lambda: self._all.check(wanted, self.encoding, again=again))
            self._show(self.round, versions)
        except Exception:  # noqa: BLE001  # the next change may go well
            self.editor.say(
                "error", f"The check failed. This is a bug in apflint, please report it.\n{traceback.format_exc()}"
            )
        finally:
            self._running = False
            self._done = number
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting.clear()
            if self._done != self._wanted and self._timer is None:
                self._start()

    def _show(self, found: Round, versions: dict[str, int | None]) -> None:
        """Shows what has changed; of a document that was edited meanwhile nothing, as its next check is on its way.

        What is open comes last: its editor may spell an address otherwise than we did while it was closed, and what we take
        back there would be gone here.
        """
        opened = {uri for uri, text in found.open.documents.items() if text}
        for uri in sorted({*found.diagnostics, *opened, *self._shown}, key=lambda uri: (uri in opened, uri)):
            document = self.documents.get(uri)
            if document is not None and document.checked != found.open.documents.get(uri):
                continue
            version = versions.get(uri) if document is not None else None
            new = (version, found.diagnostics.get(uri, []))
            if new != self._shown.get(uri):
                self.editor.show(uri, *new)
            if new[1] or uri in opened:
                self._shown[uri] = new
            else:
                self._shown.pop(uri, None)
        for note in found.notes:
            if note not in self._told:
                self.editor.say("warning", note)
        self._told = set(found.notes)
