"""A snapshot: what one API server reported at one moment, in its metrics and its debug dumps."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor import metric_names
from apflint.doctor.dumps import (
    LevelRow,
    QueueRow,
    RequestRow,
    looks_like_dump,
    parse_level_rows,
    parse_queue_rows,
    parse_request_rows,
)
from apflint.doctor.prometheus_text import Sample, Samples, looks_like_metrics, parse_samples
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.load.source_text import Source
from apflint.releases import parse_release
from apflint.user_error import UserError
from apflint.wording import join_some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.doctor.metric_names import Quantity
    from apflint.releases import Release

NANOSECONDS = 1e9
_MAX_NAMED = 5
_LEVEL_LABELS = ("priority_level", "priorityLevel")
"""Name of the label that contains the priority level. Releases 1.18 and 1.19 use the second name."""
_SCHEMA_LABELS = ("flow_schema", "flowSchema")
_MIN_DIFFERENCE, _MAX_PROPORTION = 100, 0.2
"""Maximum difference between a counter in a dump and in the metrics: the greater of a number and a proportion.

The values differ slightly, because dump and metrics were fetched one after the other.
"""


class Metrics(NamedTuple):
    """The metrics of one API server at one moment."""

    source: Source
    samples: Samples

    def find(self, quantity: Quantity) -> list[Sample]:
        """Return the samples of a quantity, or an empty list if the snapshot has no metric for the quantity.

        If the snapshot has several metrics for the quantity, use the one that Kubernetes introduced last.
        """
        for metric in quantity.metrics:
            if metric.name in self.samples.by_name:
                return self.samples.by_name[metric.name]
        return []

    def by_level(self, quantity: Quantity) -> dict[str, Sample]:
        """Return one sample for each level.

        If a level has several samples, such as one for each FlowSchema, return their sum.
        """
        totals: dict[str, Sample] = {}
        for sample in self.find(quantity):
            level = level_of(sample)
            known = totals.get(level)
            totals[level] = sample if known is None else known._replace(value=known.value + sample.value)
        return totals

    def has(self, quantity: Quantity) -> bool:
        """Return True if the metrics have samples of a quantity, or if its absence means the value 0.

        A counter appears with the first event, so an absent counter of a complete file has the value 0. The
        result is False if the quantity has an unusable value, or if the quantity is absent although servers
        always export it. It is also False if the quantity is absent and the file is incomplete. A file is
        incomplete if it has no dispatched requests, which every server exports, or if it ends before the
        name of the counter, because servers sort metrics by name.
        """
        if self.has_unusable(quantity):
            return False
        if self.find(quantity):
            return True
        last = max(self.samples.by_name, default="")
        is_complete = bool(self.find(metric_names.DISPATCHED))
        return not quantity.is_permanent and is_complete and last > max(metric.name for metric in quantity.metrics)

    def has_unusable(self, quantity: Quantity) -> bool:
        """Return whether a quantity has an unusable value.

        If a value is unusable, absent values of the quantity are unknown. Otherwise, they may count as 0.
        """
        return not self.unusable_names.isdisjoint(metric.name for metric in quantity.metrics)

    @property
    def unusable_names(self) -> set[str]:
        """The names of the metrics with unusable values."""
        return {name for _, name in self.samples.unusable}

    @property
    def has_all_levels(self) -> bool:
        """Whether the metrics probably show all levels, because they show both mandatory levels."""
        return {CATCH_ALL, EXEMPT} <= self.levels

    @property
    def levels(self) -> set[str]:
        """The names of the priority levels."""
        return {level for quantity in metric_names.QUANTITIES for level in map(level_of, self.find(quantity)) if level}

    def missing(self, release: Release | None, *, with_unusable: bool = True) -> Iterator[str]:
        """Yield the quantities that the metrics do not show although the release exports them, each with the name of the metric.

        If `with_unusable` is true, also yield quantities whose values are unusable.
        """
        for quantity in metric_names.QUANTITIES:
            name = quantity.metrics[0].name if release is None else metric_names.name_in(quantity, release)
            if name is not None and not self.has(quantity) and (with_unusable or not self.has_unusable(quantity)):
                yield f"{quantity.label} ({name})"

    def unsupported(self, release: Release | None) -> Iterator[str]:
        """Yield each quantity that the metrics do not show because the release does not export it."""
        for quantity in metric_names.QUANTITIES:
            if release is not None and metric_names.name_in(quantity, release) is None and not self.has(quantity):
                yield quantity.label

    @property
    def started(self) -> float | None:
        """Start time of the server in seconds since 1970, or None if unknown. The start time identifies the server."""
        return next((sample.value for sample in self.find(metric_names.START)), None)

    @property
    def age_seconds(self) -> float | None:
        """Age in seconds of the oldest level of the server, or None if unknown."""
        ages = [sample.value / NANOSECONDS for sample in self.find(metric_names.CLOCK)]
        return max(ages, default=None)

    @property
    def moment(self) -> float | None:
        """Time of the metrics in seconds since 1970, or None if unknown."""
        return None if self.started is None or self.age_seconds is None else self.started + self.age_seconds

    @property
    def order(self) -> float:
        """The age of the server in seconds or, if the age is unknown, the number of dispatched requests.

        Both numbers grow while the server runs, so they show which of two snapshots is later. Releases
        before Kubernetes 1.26 do not export the age.
        """
        age = self.age_seconds
        return sum(sample.value for sample in self.find(metric_names.DISPATCHED)) if age is None else age

    def is_followed_by(self, later: Metrics) -> bool:
        """Return whether `later` are later metrics of the same process.

        Their start times must be equal, and `later` must not be older.
        """
        return self.started == later.started and self.order <= later.order

    @property
    def release(self) -> Release | None:
        """The release of the server, or None if the metrics do not show it."""
        for sample in self.find(metric_names.BUILD):
            try:
                return parse_release(sample.labels.get("git_version", ""))
            except UserError:
                continue
        return None


class Snapshot(NamedTuple):
    """The metrics and dumps of one server at one moment. Parts that were not saved are None."""

    metrics: Metrics | None = None
    levels: tuple[LevelRow, ...] | None = None
    queues: tuple[QueueRow, ...] | None = None
    requests: tuple[RequestRow, ...] | None = None
    sources: tuple[Source, ...] = ()
    """The files of the snapshot: metrics and dumps of levels, queues and requests."""

    @property
    def moment(self) -> float | None:
        """Time in seconds since 1970: that of the metrics, or else the latest time in the dump of requests. None if unknown."""
        if self.metrics is not None and self.metrics.moment is not None:
            return self.metrics.moment
        times = [moment for row in self.requests or () for moment in (row.arrived, row.started) if moment is not None]
        return max(times).timestamp() if times else None

    def source_of(self, part: str) -> Source:
        """Return the file of a part: `metrics`, `levels`, `queues` or `requests`."""
        present = [name for name in ("metrics", "levels", "queues", "requests") if getattr(self, name) is not None]
        return self.sources[present.index(part)]


class Part(NamedTuple):
    """One parsed file: metrics or a dump."""

    source: Source
    kind: str
    """`metrics`, `levels`, `queues` or `requests`, as the field names of `Snapshot`."""
    content: Metrics | tuple[LevelRow, ...] | tuple[QueueRow, ...] | tuple[RequestRow, ...]


class Server(NamedTuple):
    """The snapshots of one server, the oldest first."""

    snapshots: tuple[Snapshot, ...]
    cluster: str = ""
    """Cluster of the server, or "" if the source does not show it. Servers of different clusters are not compared."""
    instance: str = ""
    """Address of the server, or "" if the source does not show it. A restarted server keeps its address."""
    baseline: tuple[Snapshot, Snapshot] | None = None
    """First and last snapshot of the earlier time with which the load is compared.

    If None, the load is compared with the load since the start of the server.
    """

    @property
    def last(self) -> Snapshot:
        """The newest snapshot."""
        return self.snapshots[-1]


def level_of(sample: Sample) -> str:
    """Return the priority level of a sample, or an empty string if the sample has no such label."""
    return next((sample.labels[label] for label in _LEVEL_LABELS if label in sample.labels), "")


def schema_of(sample: Sample) -> str:
    """Return the FlowSchema of a sample, or an empty string if the sample has no such label."""
    return next((sample.labels[label] for label in _SCHEMA_LABELS if label in sample.labels), "")


def is_server_file(text: str) -> bool:
    """Return whether the start of a file looks like metrics or a dump. The rest of the file is not checked."""
    return looks_like_dump(text) or looks_like_metrics(text)


class UnknownContentError(UserError):
    """Raised for a file that contains neither metrics nor a dump, nor another answer of an API server."""


def parse_part(name: str, text: str) -> Part:
    """Parse metrics or a dump. The content determines the kind of the file.

    Raises UserError for metrics or a dump that cannot be used, and UnknownContentError for other content. The message
    starts with `name`.
    """
    source = Source(name, text)
    try:
        return _parse(source)
    except UserError as error:
        raise type(error)(f"{name}: {error}") from None


def _parse(source: Source) -> Part:
    text = source.text
    if not text.strip():
        raise UserError("the file is empty: save it again")
    if looks_like_dump(text):
        for kind, parse in (
            ("levels", parse_level_rows),
            ("queues", parse_queue_rows),
            ("requests", parse_request_rows),
        ):
            rows = parse(text)
            if rows is not None:
                return Part(source, kind, rows)
    if looks_like_metrics(text):
        metrics = Metrics(source, parse_samples(text, metric_names.NAMES))
        if not any(
            name.startswith(metric_names.PREFIX) for name in (*metrics.samples.by_name, *metrics.unusable_names)
        ):
            raise UserError(
                f"there is no metric {metric_names.PREFIX}*: these are the metrics of another component, or of an API server"
                " without API Priority and Fairness"
            )
        return Part(source, "metrics", metrics)
    if '"kind":"Status"' in text.replace(" ", "")[:2000]:
        raise UserError(
            "the API server has answered with an error instead of metrics or a dump: repeat the request as a user with permission"
        )
    raise UnknownContentError(
        "this is neither metrics nor one of the dumps dump_priority_levels, dump_queues and dump_requests. For manifests, use"
        f" -f {source.name}"
    )


def group_servers(parts: Sequence[Part]) -> tuple[Server, ...]:
    """Group files into snapshots and servers.

    Metrics with the same start time are from one server. The age of the levels orders the snapshots of a server. Dumps
    contain neither start time nor age. A dump belongs to the metrics whose file has the same name up to the first dot.
    If there are no such metrics, the dump belongs to the metrics in the same directory, if that directory has exactly one
    file with metrics. Otherwise, the dump belongs to the newest metrics if there is only one server. Raises UserError if a
    dump cannot be assigned, or contradicts the metrics.
    """
    metrics = [part for part in parts if part.kind == "metrics"]
    dumps = [part for part in parts if part.kind != "metrics"]
    servers = _group_metrics(metrics)
    groups: list[list[Part]] = [[part] for server in servers for part in server]
    if not groups:
        return tuple(Server((_assemble(group),)) for group in _group_dumps(dumps))
    for dump in dumps:
        related = [[group for group in groups if key(group[0]) == key(dump)] for key in (_stem, _directory)]
        chosen = next((candidates[0] for candidates in related if len(candidates) == 1), None)
        if chosen is not None:
            chosen.append(dump)
        elif len(servers) == 1:
            groups[-1].append(dump)
        else:
            raise UserError(
                f"{dump.source.name}: it is unknown which of the {len(servers)} servers wrote this dump. Save the metrics and the dumps of one server at one time"
                " with the same name up to the first dot, such as a.metrics and a.queues"
            )
    snapshots = iter([_assemble(group) for group in groups])
    return tuple(Server(tuple(next(snapshots) for _ in server)) for server in servers)


def _stem(part: Part) -> tuple[str, str]:
    return _directory(part), os.path.basename(part.source.name).split(".")[0]


def _directory(part: Part) -> str:
    return os.path.dirname(part.source.name)


def _group_metrics(metrics: Sequence[Part]) -> list[list[Part]]:
    """Return one list of metrics files for each server. Each list begins with the oldest metrics.

    Raises UserError if the files do not show which of two files is older, or whether two files are from
    the same server.
    """
    servers: dict[float | None, list[Part]] = {}
    for part in metrics:
        servers.setdefault(_metrics(part).started, []).append(part)
    for started, group in servers.items():
        group.sort(key=lambda part: _metrics(part).order)
        for part, other in pairwise(group):
            _check_order(part, other, is_same_server=started is not None)
    return list(servers.values())


def _check_order(part: Part, other: Part, *, is_same_server: bool) -> None:
    """Raise UserError unless the metrics in `other` are certainly later than those in `part`, and of the same server."""
    names = f"{part.source.name} and {other.source.name}"
    if not is_same_server:
        raise UserError(
            f"{names}: without process_start_time_seconds, apflint cannot tell whether both files are from the same server"
        )
    if _metrics(part).order == _metrics(other).order:
        raise UserError(f"{names}: the metrics do not show which of them is older")
    for quantity in (metric_names.DISPATCHED, metric_names.REJECTED):
        later = _metrics(other).by_level(quantity)
        for level, sample in _metrics(part).by_level(quantity).items():
            if _metrics(other).has(quantity) and (level not in later or later[level].value < sample.value):
                raise UserError(
                    f'{names} are not from the same server: the later file has fewer {quantity.label} at "{level}"'
                )


def _metrics(part: Part) -> Metrics:
    assert isinstance(part.content, Metrics), part.kind
    return part.content


def _group_dumps(dumps: Sequence[Part]) -> list[list[Part]]:
    """Group the dumps of snapshots without metrics.

    If several dumps have the same kind, group the dumps by file name. Otherwise, all dumps are one group.
    """
    kinds = [part.kind for part in dumps if part.kind != "requests"]
    if len(kinds) == len(set(kinds)) and kinds:
        return [list(dumps)]
    groups: dict[tuple[str, str], list[Part]] = {}
    for part in dumps:
        groups.setdefault(_stem(part), []).append(part)
    return list(groups.values())


def _assemble(parts: Sequence[Part]) -> Snapshot:
    """Return one snapshot of one server, made from `parts`: the metrics and the dumps of the same moment.

    Raises UserError if the parts are from several servers or moments.
    """
    by_kind: dict[str, Part] = {}
    for part in parts:
        known = by_kind.get(part.kind)
        if known is not None and part.kind != "requests":
            raise UserError(
                f"{known.source.name} and {part.source.name} are dumps of the same kind, so they are from several servers or moments: pass only one of the two files,"
                " or add the metrics of each server and moment. Files of one server and moment need the same file name up to the first dot"
            )
        if known is None or _has_details(part):
            by_kind[part.kind] = part
    content = {kind: part.content for kind, part in by_kind.items()}
    kinds = [kind for kind in ("metrics", "levels", "queues", "requests") if kind in by_kind]
    snapshot = Snapshot(**content, sources=tuple(by_kind[kind].source for kind in kinds))  # type: ignore[arg-type]  # not checked by key
    _check_consistency(snapshot)
    return snapshot


def _has_details(part: Part) -> bool:
    return any(isinstance(row, RequestRow) and row.user is not None for row in part.content)


def _check_consistency(snapshot: Snapshot) -> None:
    """Raise UserError if parts of a snapshot contradict each other because they are from several servers or moments."""
    if snapshot.levels is None:
        if snapshot.metrics is not None and snapshot.metrics.has_all_levels:
            known = snapshot.metrics.levels
            for kind, rows in (("queues", snapshot.queues), ("requests", snapshot.requests)):
                _check_levels(snapshot, "metrics", known, kind, rows)
        return
    known = {row.level for row in snapshot.levels}
    for kind, rows in (("queues", snapshot.queues), ("requests", snapshot.requests)):
        _check_levels(snapshot, "levels", known, kind, rows)
    if snapshot.metrics is None:
        return
    is_complete = snapshot.metrics.has_all_levels
    if is_complete:
        _check_levels(snapshot, "metrics", snapshot.metrics.levels, "levels", snapshot.levels)
    for quantity, counts in (
        (metric_names.DISPATCHED, {row.level: row.dispatched for row in snapshot.levels}),
        (metric_names.REJECTED, {row.level: row.rejected for row in snapshot.levels}),
    ):
        if not snapshot.metrics.has(quantity):
            continue
        totals = snapshot.metrics.by_level(quantity)
        for level, count in counts.items():
            if level not in totals and not is_complete:
                continue
            total = totals[level].value if level in totals else 0
            if count is not None and abs(count - total) > max(_MIN_DIFFERENCE, _MAX_PROPORTION * max(count, total)):
                raise _contradiction(
                    snapshot, "metrics", "levels", f'"{level}" has {total:.0f} and {count} {quantity.label}'
                )


def _check_levels(
    snapshot: Snapshot,
    kind: str,
    known: set[str],
    other: str,
    rows: Iterable[LevelRow | QueueRow | RequestRow] | None,
) -> None:
    unknown = sorted({row.level for row in rows or ()} - known)
    if known and unknown:
        raise _contradiction(
            snapshot, kind, other, f"only the second file has the level {join_some(unknown, _MAX_NAMED)}"
        )


def _contradiction(snapshot: Snapshot, kind: str, other: str, reason: str) -> UserError:
    names = f"{snapshot.source_of(kind).name} and {snapshot.source_of(other).name}"
    return UserError(f"{names} are not from the same server and moment: {reason}")
