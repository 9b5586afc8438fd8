"""Writes the load of an audit log as a load file that users can edit.

The file has a client for each user, verb and resource.

The load sends each request of the log, including rejected requests and retries, at about its logged time. The sorted
service times of a client are divided into parts of equal size. The file has the average of each part, so that the sum
of all service times stays the same.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from itertools import groupby, pairwise
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.flows import BY_NAMESPACE
from apflint.evaluate.match import rs_join
from apflint.evaluate.seats import UNKNOWN_OBJECT_BYTES
from apflint.named_tuple import NamedTuple
from apflint.requests.request import COLLECTION_VERBS, requires_name
from apflint.requests.request_words import RequestArguments
from apflint.simulate.verdict_sentences import format_time
from apflint.user_error import UserError
from apflint.wording import count_noun, format_duration, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Replay
    from apflint.replay.object_counts import ObjectCounts

_SECOND = 1_000_000
"""Number of microseconds in a second. Logs have times in microseconds."""
_MAX_BURSTS = 300
"""Maximum number of bursts of a client. If a log would need more bursts of one second each, its bursts are longer."""
_MAX_TIMES = 12
"""Maximum number of service times of a client."""
_PERIOD = 5 * _SECOND
"""Length in microseconds of the consecutive parts of a log whose average service times are compared."""
_CHANGE = 2.5
"""Minimum ratio of the average service times of two consecutive parts.

At this ratio or more, the requests are split into two clients.
"""
_MIN_EXECUTED = 5
"""Minimum number of executed requests in a part. Service times of parts with fewer requests are not compared."""
_MIN_STEADY = 20
"""Minimum number of requests of a client with a rate. Clients with fewer requests have bursts."""
_STEADY = (0.5, 1.5)
"""Range of the variance-to-mean ratio in which requests count as a Poisson process.

The ratio is that of the number of requests per interval. For an exact Poisson process, it is 1.
"""
_OBJECT_NAME = "name"
"""Name of the object, for requests that need a name. API Priority and Fairness does not read names."""
_ROWS = """
    SELECT tuple, coalesce(namespace, ''), received, busy, rejected FROM apf
    WHERE rejected = 1 OR busy IS NOT NULL ORDER BY tuple, coalesce(namespace, ''), received, rejected, busy
"""
"""SQL query for requests that the server rejected or executed, sorted by attribute tuple and namespace."""


class _Requests(NamedTuple):
    """Requests of one client. Times are in microseconds."""

    attributes: int
    namespace: str
    """The most frequent namespace."""
    arrivals: tuple[int, ...]
    times: tuple[int, ...]
    """Service times of executed requests in ascending order."""


class WrittenClient(NamedTuple):
    """A client of the load file."""

    requests: int
    lines: tuple[str, ...]


class WrittenFile(NamedTuple):
    """The text of a load file."""

    text: str
    clients: int
    requests: int
    left_out: int
    """Number of requests that a load file cannot express, or whose service time the log does not show."""


def write_load(replay: Replay, description: str, counts: ObjectCounts | None = None) -> WrittenFile:
    """Return the load file of a log. `description` names the log. `counts` are the numbers of stored objects.

    Raises UserError if no request can be simulated.
    """
    groups = list(_group_requests(replay))
    known = [time for requests in groups for time in requests.times]
    if not known:
        raise UserError("--write-load: no request in the audit log has a known service time")
    start = min(requests.arrivals[0] for requests in groups)
    end = max(requests.arrivals[-1] for requests in groups)
    duration = max(1, ceil((end - start + 1) / _SECOND)) * _SECOND
    fallback = _average_parts(sorted(known))
    names: Counter[str] = Counter()
    clients: list[WrittenClient] = []
    (((count,),), ((servers,),)) = _query_totals(replay)
    for requests in sorted(groups, key=lambda requests: (-len(requests.arrivals), requests.attributes)):
        lines = _describe_client(replay, requests, names)
        if lines is None:
            continue
        times = _average_parts(requests.times) if requests.times else fallback
        lines += [f"    count: {servers}"] if servers > 1 else []
        lines += [f"    service: [{', '.join(map(_format_time, times))}]"]
        lines += _describe_arrivals([at - start for at in requests.arrivals], duration, servers)
        clients.append(WrittenClient(len(requests.arrivals), tuple(lines)))
    written = sum(client.requests for client in clients)
    header = _list_figures(replay, description, duration, count - written)
    body = [f"duration: {duration // _SECOND}s", "warmup: 0s  # the log has no earlier requests for a warm-up"]
    body += [f"servers: {servers}"] if servers > 1 else []
    body += [*_describe_objects(counts or {}), "clients:", *(line for client in clients for line in client.lines)]
    return WrittenFile("\n".join((*header, *body, "")), len(clients), written, count - written)


def _query_totals(replay: Replay) -> tuple[Any, Any]:
    query: Any = replay.log.database.query
    return query("SELECT count(*) FROM apf"), query("SELECT count(DISTINCT server) FROM apf")


def _group_requests(replay: Replay) -> Iterator[_Requests]:
    """Yield the requests of each client of the load file.

    The requests of a client have equal attributes (`AttributeTuple`), such as user, verb and resource. If the namespace
    determines the flow, they also have the same namespace. `_split` may divide such requests into several clients.
    """
    rows: Any = replay.log.database.stream(_ROWS)

    def find_key(row: tuple[Any, ...]) -> tuple[int, str]:
        return row[0], row[1] if replay.assignments[row[0]].distinguished_by == BY_NAMESPACE else ""

    for (attributes, _), group in groupby(rows, find_key):
        namespaces: Counter[str] = Counter()
        requests: list[tuple[int, int | None]] = []
        for _, namespace, received, busy, rejected in group:
            namespaces[namespace] += 1
            requests.append((received, None if rejected else busy))
        most = max(namespaces.items(), key=itemgetter(1))[0]
        for part in _split(sorted(requests, key=itemgetter(0))):
            times = sorted(busy for _, busy in part if busy is not None)
            yield _Requests(attributes, most, tuple(received for received, _ in part), tuple(times))


def _split(requests: Sequence[tuple[int, int | None]]) -> Iterator[list[tuple[int, int | None]]]:
    """Split the requests of a client into parts with similar service times.

    A new part begins when the average service time changes by the factor `_CHANGE`, as in an incident.

    A request is a pair of its arrival and its service time, which is None for a rejected request.
    """
    part: list[tuple[int, int | None]] = []
    for _, group in groupby(requests, lambda request: request[0] // _PERIOD):
        period = list(group)
        former, latter = _average_time(part), _average_time(period)
        if former and latter and not 1 / _CHANGE <= latter / former <= _CHANGE:
            yield part
            part = []
        part += period
    yield part


def _average_time(requests: Sequence[tuple[int, int | None]]) -> float:
    """Return the average service time of requests, or 0 if fewer than `_MIN_EXECUTED` have a service time."""
    times = [busy for _, busy in requests if busy is not None]
    return sum(times) / len(times) if len(times) >= _MIN_EXECUTED else 0.0


def _describe_client(replay: Replay, requests: _Requests, names: Counter[str]) -> list[str] | None:
    """Return the first lines of a client in the load file, or None if a load file cannot express the client's request."""
    attributes = replay.log.tuples[requests.attributes]
    arguments = _find_arguments(attributes, requests.namespace)
    if arguments is None:
        return None
    name = (
        f"{arguments.user} {attributes.verb} {rs_join(attributes.resource, attributes.subresource) or attributes.path}"
    )
    names[name] += 1
    if names[name] > 1:
        name = f"{name} ({names[name]})"
    words = shlex.join(arguments._replace(user="", groups=()).to_command_line())
    words = words.replace(" --as ''", "")
    lines = [f"  - name: {json.dumps(name)}", f"    as: {json.dumps(arguments.user)}"]
    if arguments.groups:
        lines.append(f"    groups: {json.dumps(list(arguments.groups))}")
    return [*lines, f"    request: {json.dumps(words)}"]


def _find_arguments(attributes: AttributeTuple, namespace: str) -> RequestArguments | None:
    """Return arguments of `apflint explain` for a request with these attributes, or None if none exist."""
    user, verb = attributes.user, attributes.verb
    if not user:
        return None
    added = complete_groups(user, ("x",))[0]
    groups = tuple(group for group in attributes.groups or () if group not in added)
    if attributes.path:
        words: tuple[str, ...] = (verb, attributes.path)
    else:
        resource = f"{attributes.resource}.{attributes.api_group}" if attributes.api_group else attributes.resource
        words = (verb, f"{resource}/{attributes.subresource}" if attributes.subresource else resource)
        if requires_name(verb) or (attributes.subresource and verb not in COLLECTION_VERBS):
            words = (*words, _OBJECT_NAME)
    is_everywhere = not namespace and verb in COLLECTION_VERBS and not attributes.path
    arguments = RequestArguments(user, words, groups, namespace or None, is_everywhere)
    try:
        info = arguments.to_request().info
    except UserError:
        return None
    wanted = (verb, attributes.api_group, attributes.resource, attributes.subresource)
    return arguments if (info.verb, info.api_group, info.resource, info.subresource) == wanted else None


def _average_parts(times: Sequence[int]) -> list[int]:
    """Divide sorted times into at most `_MAX_TIMES` parts of equal size, and return the average of each part."""
    parts = min(_MAX_TIMES, len(times))
    bounds = [len(times) * part // parts for part in range(parts + 1)]
    return [round(sum(times[low:high]) / (high - low)) for low, high in pairwise(bounds)]


def _describe_arrivals(arrivals: Sequence[int], duration: int, servers: int) -> list[str]:
    """Return the lines of a load file that describe when the requests arrive.

    If the requests arrive steadily, return a line with the key `rate`. Otherwise, return lines with the
    key `bursts`. `arrivals` are in microseconds since the start of the load.
    """
    width = max(_SECOND, ceil(duration / _MAX_BURSTS))
    if _is_steady(arrivals, duration, width):
        return [f"    rate: {len(arrivals) * 3600 * _SECOND / duration / servers:.6g}/h"]
    lines = ["    bursts:"]
    for _, group in groupby(arrivals, lambda at: at // width):
        times = list(group)
        # The simulation sends the requests of a burst at equal intervals of `over / requests`, the first request at the
        # start of the burst. Choose `over` such that the simulation sends the last request at its logged time.
        over = (times[-1] - times[0]) * len(times) // max(1, len(times) - 1)
        over = min(over, duration - times[0])
        spread = f", over: {_format_time(over)}" if over >= _SECOND // 1000 else ""
        lines.append(f"      - {{at: {_format_time(times[0])}, requests: {len(times)}{spread}}}")
    return lines


def _is_steady(arrivals: Sequence[int], duration: int, width: int) -> bool:
    """Return whether the requests arrive like a Poisson process (see `_STEADY`) during the whole load."""
    parts = ceil(duration / width)
    average = len(arrivals) / parts
    if len(arrivals) < _MIN_STEADY or parts < _MIN_STEADY:
        return False
    counts = Counter(at // width for at in arrivals)
    variance = sum(count * count for count in counts.values()) / parts - average * average
    halves = sum(at < duration // 2 for at in arrivals) / len(arrivals)
    return _STEADY[0] <= variance / average <= _STEADY[1] and 0.4 < halves < 0.6


def _format_time(microseconds: int) -> str:
    """Format a time as a duration that `parse_duration` accepts, such as `15ms`."""
    if microseconds < 10_000:
        return f"{microseconds}us"
    return f"{microseconds / 1000:g}ms" if microseconds < _SECOND else f"{microseconds / _SECOND:.3f}s"


def _describe_objects(counts: ObjectCounts) -> Iterator[str]:
    """Yield a line for the stored objects of each resource."""
    known = {name: total for name, total in sorted(counts.items()) if total.number > 0}
    if known:
        yield "objects:"
    for name, total in known.items():
        # `UNKNOWN_OBJECT_BYTES` is the size that the server assumes if it could not measure the objects.
        yield f"  {json.dumps(name)}: {{count: {total.number}, size: {total.size or UNKNOWN_OBJECT_BYTES}}}"


def _list_figures(replay: Replay, description: str, duration: int, left_out: int) -> Iterator[str]:
    """Yield the comment lines at the start of a load file that is written from a log.

    The lines name the log and its duration, and state the number of requests that are left out. For
    each priority level, they state the number of requests and rejections in the log, and the 99th
    percentile of the waits.
    """
    yield f"# Requests from {description} in a period of {format_duration(duration)}. Written by apflint replay --write-load."
    yield "# Each attempt of a client is a request, because the log does not show which requests are retries."
    if left_out:
        yield f"# Left out: {pluralize(left_out, 'request')} whose service time the log does not show, such as watches."
    yield "# The log has:"
    for level, requests, rejected, waits in _query_levels(replay):
        p99 = waits[ceil(0.99 * len(waits)) - 1] if waits else 0
        wait = f", 99th percentile of the waits {format_time(p99 * 1000)}" if p99 else ""
        yield f"#   {level}: {count_noun(requests, 'request')}, {rejected:,} rejected{wait}"


def _query_levels(replay: Replay) -> Iterable[tuple[str, int, int, list[int]]]:
    """Return the figures of each level: requests, rejections, and sorted waits of the other requests."""
    figures: dict[str, tuple[list[int], list[int]]] = {}
    rows: Any = replay.log.database.stream("SELECT tuple, wait, rejected FROM apf")
    for attributes, wait, rejected in rows:
        level = replay.assignments[attributes].priority_level or ""
        rejections, waits = figures.setdefault(level, ([], []))
        rejections.append(rejected)
        if not rejected:
            waits.append(wait or 0)
    return [
        (level, len(rejections), sum(rejections), sorted(waits))
        for level, (rejections, waits) in sorted(figures.items())
    ]
