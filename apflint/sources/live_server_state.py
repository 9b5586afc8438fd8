"""Reads the metrics and dumps of a running API server with kubectl."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apflint.budgets import MAX_LIVE_PROCESSES, MAX_METRICS_BYTES
from apflint.doctor.snapshot import Part, group_servers, parse_part
from apflint.load.source_text import LIVE_PREFIX
from apflint.sources.kubectl import read_raw
from apflint.sources.programs import kill_programs
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from apflint.sources.kubectl import KubectlOptions

METRICS = "metrics"
_DUMPS = {
    "dump_priority_levels": "/debug/api_priority_and_fairness/dump_priority_levels",
    "dump_queues": "/debug/api_priority_and_fairness/dump_queues",
    "dump_requests": "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1",
}
_START = re.compile(rb"^process_start_time_seconds[ \t]+(\S+)", re.MULTILINE)


class Reading:
    """The metrics and dumps of an API server, each read by its own kubectl process. All processes run in parallel."""

    def __init__(self, executor: ThreadPoolExecutor, kubectl: KubectlOptions, *, has_dumps: bool) -> None:
        """Start to read the metrics and, if `has_dumps` is true, the dumps."""
        paths = {METRICS: f"/{METRICS}", **(_DUMPS if has_dumps else {})}
        self._answers: dict[str, Future[bytes]] = {
            name: executor.submit(read_raw, kubectl, path, MAX_METRICS_BYTES) for name, path in paths.items()
        }
        self._name = kubectl.address or ""
        self.has_dumps = has_dumps

    def parse(self, notes: list[str], name: str | None = None, *, has_dumps: bool = True) -> tuple[Part, ...]:
        """Return the metrics and, if `has_dumps` is true, the dumps.

        Append a sentence about each missing part to `notes`. The names of the parts have the form `live:NAME/metrics`,
        or `live:metrics` if `name` is empty. The default of `name` is the address of the server. Raises UserError if
        neither metrics nor dumps can be read.
        """
        errors: list[str] = []
        directory = self._name if name is None else name
        prefix = f"{LIVE_PREFIX}{directory}/" if directory else LIVE_PREFIX
        parts = list(self._parse_all(prefix, [METRICS] if not has_dumps else [*self._answers], errors))
        if not parts:
            raise UserError(errors[0])
        notes += errors
        return tuple(_drop_contradictions(parts, notes))

    def find_start(self) -> bytes | None:
        """Return the start time of the server as text, or None if the metrics do not contain it.

        The start time identifies the server. The rest of the metrics is not parsed.
        """
        try:
            found = _START.search(self._answers[METRICS].result())
        except UserError:
            return None
        return found[1] if found else None

    def _parse_all(self, prefix: str, names: list[str], errors: list[str]) -> Iterator[Part]:
        for name in names:
            try:
                yield parse_part(f"{prefix}{name}", self._answers[name].result().decode("utf-8", "replace"))
            except UserError as error:
                errors.append(str(error))


@contextmanager
def start_readers() -> Iterator[ThreadPoolExecutor]:
    """Yield an executor whose threads run kubectl.

    If the user presses Ctrl-C, the kubectl processes and the threads end immediately.
    """
    executor = ThreadPoolExecutor(MAX_LIVE_PROCESSES)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        kill_programs()
        raise
    executor.shutdown()


def read_live_parts(kubectl: KubectlOptions, notes: list[str]) -> tuple[Part, ...]:
    """Return the metrics and the dumps of the API server that kubectl reaches.

    Append a sentence about each missing part to `notes`.

    Raises UserError if neither metrics nor dumps can be read.
    """
    with start_readers() as executor:
        return Reading(executor, kubectl, has_dumps=True).parse(notes)


def _drop_contradictions(parts: list[Part], notes: list[str]) -> list[Part]:
    """Return the parts that can be from the same API server as the first part.

    Parts of different API servers contradict each other. A note about each part that contradicts an earlier part is
    appended to `notes`.
    """
    kept: list[Part] = []
    for part in parts:
        try:
            group_servers((*kept, part))
        except UserError as error:
            notes.append(f"{error}; {part.source.name} is ignored, because it may be the answer of another API server")
        else:
            kept.append(part)
    return kept
