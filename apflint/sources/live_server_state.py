"""Reads the metrics, dumps and objects of a running API server with kubectl."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_METRICS_BYTES
from apflint.doctor.snapshot import Part, group_servers, parse_part
from apflint.load.source_text import LIVE_PREFIX, Source
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.kubectl import read_raw
from apflint.sources.source_arguments import LIVE
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective_configuration import Effective
    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import KubectlOptions

_METRICS = "metrics"
_PATHS = {
    _METRICS: "/metrics",
    **{
        name: f"/debug/api_priority_and_fairness/{name}"
        for name in ("dump_priority_levels", "dump_queues", "dump_requests")
    },
}
_DETAILS = {"dump_requests": "?includeRequestDetails=1"}


class LiveServer(NamedTuple):
    """Metrics, dumps and objects of a running API server."""

    parts: tuple[Part, ...]
    objects: Effective | None
    """The objects of the cluster, or None if they cannot be read."""
    notes: tuple[str, ...]
    """Sentences about data that could not be read."""


def read_live_server(kubectl: KubectlOptions, request: InputRequest, seconds: float | None = None) -> LiveServer:
    """Return the metrics, the dumps and the objects of the API server that kubectl reaches.

    If `seconds` is set, read the metrics first, wait, and then read all data. The result has the metrics of both times, unless
    they are from different API servers. Raises UserError if neither metrics nor dumps can be read.
    """
    notes: list[str] = []
    first: Part | None = None
    if seconds is not None:
        first = _parse(_METRICS, read_raw(kubectl, _PATHS[_METRICS], MAX_METRICS_BYTES))
        time.sleep(seconds)
    parts = list(read_live_parts(kubectl, notes))
    if first is not None:
        parts = _add_earlier(first, parts, notes)
    try:
        configuration = read_configuration(request._replace(words=(LIVE,), kubectl=kubectl))
        objects = configuration.effective
        notes += configuration.notes
    except UserError as error:
        objects = None
        notes.append(str(error))
    return LiveServer(tuple(parts), objects, tuple(notes))


def _add_earlier(first: Part, parts: list[Part], notes: list[str]) -> list[Part]:
    """Return the parts with the earlier metrics. If the earlier metrics are from another server, only add a note."""
    earlier = first._replace(source=Source(f"{first.source.name}-before", first.source.text))
    later = [part for part in parts if part.kind == _METRICS]
    try:
        servers = group_servers((earlier, *later))
    except UserError as error:
        notes.append(f"{error}; there are no rates")
        return parts
    if len(servers) == 1 and later:
        return [earlier, *parts]
    reason = "another API server has answered the second time" if later else "the second metrics are missing"
    notes.append(f"{reason}, so there are no rates: run the command again")
    return parts


def read_live_parts(kubectl: KubectlOptions, notes: list[str]) -> tuple[Part, ...]:
    """Return the metrics and the dumps of the API server that kubectl reaches.

    Append a sentence about each missing part to `notes`.

    Raises UserError if neither metrics nor dumps can be read.
    """
    return tuple(_drop_contradictions(list(_read_parts(kubectl, notes)), notes))


def _read_parts(kubectl: KubectlOptions, notes: list[str]) -> Iterator[Part]:
    """Yield the parts that can be read, read concurrently if possible. Raises UserError if no part can be read."""
    with ThreadPoolExecutor(len(_PATHS)) as executor:
        answers = {
            name: executor.submit(read_raw, kubectl, path + _DETAILS.get(name, ""), MAX_METRICS_BYTES)
            for name, path in _PATHS.items()
        }
    errors: list[str] = []
    for name, answer in answers.items():
        try:
            yield _parse(name, answer.result())
        except UserError as error:
            errors.append(str(error))
    if len(errors) == len(answers):
        raise UserError(errors[0])
    notes += errors


def _drop_contradictions(parts: list[Part], notes: list[str]) -> list[Part]:
    """Return the parts without those that contradict an earlier part, because another API server answered."""
    kept: list[Part] = []
    for part in parts:
        try:
            group_servers((*kept, part))
        except UserError as error:
            notes.append(f"{error}; {part.source.name} is not used, because another API server may have answered")
        else:
            kept.append(part)
    return kept


def _parse(name: str, data: bytes) -> Part:
    return parse_part(f"{LIVE_PREFIX}{name}", data.decode("utf-8", "replace"))
