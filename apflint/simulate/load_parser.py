"""Parser of load files. Errors in a file are returned as `Mistake` values, not raised.

The format is documented in `docs/commands/simulate.md`. `schemas/apflint-load.json` is its JSON schema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate.request_outcomes import parse_duration
from apflint.load.apflint_files import Fields, read_fields
from apflint.named_tuple import NamedTuple
from apflint.requests.request_words import RequestArguments, infer_resource, parse_command_line
from apflint.simulate.load import (
    DEFAULT_OBJECT_BYTES,
    DEFAULT_WARMUP,
    NUMBER,
    REQUEST_TIMEOUT,
    SECOND,
    Burst,
    Load,
    ObjectCount,
    ResourceKey,
    Retries,
    ServiceTime,
    SimulatedClient,
    log_normal,
)
from apflint.simulate.simulation import MAX_RETRIES
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from apflint.load.apflint_files import Mistake
    from apflint.load.source_text import Source
    from apflint.location import Path

_LOAD_KEYS = ("duration", "warmup", "servers", "clients", "objects", "watchers")
_CLIENT_KEYS = (
    *("name", "as", "groups", "request", "count", "rate", "think", "service", "bursts", "retries", "timeout"),
)
_MILLISECOND = SECOND // 1000
_RATE_SECONDS = {"s": 1, "m": 60, "h": 3600}
_RATE = re.compile(r"([0-9]{0,9}\.?[0-9]{1,9})/([smh])", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,9})(|k|Ki|M|Mi)B?", re.ASCII)
_SIZE_FACTORS = {"": 1, "k": 1000, "Ki": 1024, "M": 1_000_000, "Mi": 1 << 20}
_RETRY_AFTER = "retry-after"


class ParsedLoad(NamedTuple):
    """The result of parsing a load file. `load` is None if there are mistakes."""

    source: Source
    load: Load | None
    fields: Fields | None
    """The values of the file, with which callers can report further mistakes. None if the file is not a mapping."""
    mistakes: tuple[Mistake, ...]


def parse_load(name: str, data: bytes) -> ParsedLoad:
    """Parse a load file. `name` is the file name for messages; if it ends with `.json`, parse JSON instead of YAML."""
    file = read_fields(name, data, "load", "`duration` and `clients`", "list all clients under one `clients`")
    load = None if file.fields is None else _parse_load(_LoadFields(file.fields))
    mistakes = file.find_mistakes()
    return ParsedLoad(file.source, None if mistakes else load, file.fields, mistakes)


def parse_rate(text: str) -> float | None:
    """Return the requests per second of a rate such as `2/s`, `30/m` or `5/h`, or None for other text and for 0."""
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]):
        return None
    return float(match[1]) / _RATE_SECONDS[match[2]]


class _LoadFields:
    """Reads durations, rates and service times, which only load files have."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.duration_of_load = 0

    def duration(self, path: Path, *, minimum: int = _MILLISECOND) -> int | None:
        """Return the duration at `path` in nanoseconds, or None if the value is absent or invalid.

        Report an invalid value.
        """
        fields = self.fields
        if not fields.has(path):
            return None
        value = fields.value(path)
        seconds = parse_duration(value) if isinstance(value, str) else None
        if seconds is None:
            fields.reject(path, f"expected a duration such as 500ms, 1.5s or 10m, not {fields.document.text(path)}")
        elif seconds * SECOND < minimum:
            least = "0s" if not minimum else "1ms" if minimum == _MILLISECOND else "1ns"
            fields.reject(path, f"expected a duration of at least {least}, not {value}")
        else:
            return round(seconds * SECOND)
        return None

    def rate(self, path: Path) -> float:
        """Return the rate at `path` in requests per second, or 0 if the value is absent or invalid.

        Report an invalid value.
        """
        fields = self.fields
        if not fields.has(path):
            return 0.0
        value = fields.value(path)
        rate = parse_rate(value) if isinstance(value, str) else None
        if rate is None:
            fields.reject(path, f"expected a rate such as 2/s, 30/m or 5/h, not {fields.document.text(path)}")
        return rate or 0.0

    def service(self, path: Path) -> ServiceTime | None:
        """Return the distribution at `path`: a duration, a list of durations, or a mapping with `p50` and `p99`.

        Return None if the value is absent or invalid. Report an invalid value.
        """
        fields, value = self.fields, self.fields.value(path)
        if isinstance(value, list):
            samples = [self.duration((*path, at), minimum=0) for at in range(len(value))]
            if not samples:
                fields.reject(path, "the list is empty: add observed service times")
            known = sorted(sample for sample in samples if sample is not None)
            return ServiceTime(known[len(known) // 2], samples=tuple(known)) if known else None
        if not isinstance(value, dict):
            time = self.duration(path, minimum=0)
            return None if time is None else ServiceTime(time)
        if not fields.check_keys(path, ("p50", "p99")):
            return None
        p50, p99 = (self.duration((*path, key), minimum=1) for key in ("p50", "p99"))
        for key in ("p50", "p99"):
            if key not in value:
                fields.reject(path, f"`{key}` is missing: a distribution has `p50` and `p99`")
        if p50 is None or p99 is None:
            return None
        if p99 < p50:
            fields.reject((*path, "p99"), "p99 is less than p50")
            return None
        return log_normal(p50, p99)


def _parse_load(reader: _LoadFields) -> Load | None:
    fields = reader.fields
    if not fields.check_keys((), _LOAD_KEYS):
        return None
    duration = reader.duration(("duration",))
    if not fields.has(("duration",)):
        fields.reject((), "`duration` is missing: state how long clients send requests, as in `duration: 10m`")
    reader.duration_of_load = duration or 0
    warmup = reader.duration(("warmup",), minimum=0)
    entries = fields.value(("clients",))
    if not isinstance(entries, list) or not entries:
        message = "`clients` must be a list with at least one client"
        fields.reject(("clients",) if fields.has(("clients",)) else (), message)
        entries = []
    clients = [_parse_client(reader, ("clients", number)) for number in range(len(entries))]
    names: set[str] = set()
    for number, client in enumerate(clients):
        if client is not None and client.name in names:
            fields.reject(
                ("clients", number, "name"), f"several clients have the name {quote(client.name)}: rename one of them"
            )
        names.add(client.name if client else "")
    return Load(
        duration or 0,
        tuple(client for client in clients if client is not None),
        fields.integer(("servers",)) or 1,
        {key: _parse_objects(fields, ("objects", name)) for name, key in _parse_resources(fields, "objects").items()},
        {key: fields.integer(("watchers", name)) or 0 for name, key in _parse_resources(fields, "watchers").items()},
        DEFAULT_WARMUP if warmup is None else warmup,
    )


def _parse_client(reader: _LoadFields, path: Path) -> SimulatedClient | None:
    fields = reader.fields
    count = len(fields.mistakes)
    if not fields.check_keys(path, _CLIENT_KEYS):
        return None
    for key in ("name", "request", "service"):
        if not fields.has((*path, key)):
            fields.reject(path, f"this client has no `{key}`")
    name = fields.string((*path, "name"))
    rate, think = reader.rate((*path, "rate")), reader.duration((*path, "think"))
    bursts = tuple(_parse_burst(reader, item) for item in fields.items((*path, "bursts")))
    if rate and think is not None:
        message = "remove `rate` or `think`: a client has an open loop (`rate`) or a closed loop (`think`), not both"
        fields.reject((*path, "think"), message, key=True)
    service, timeout = reader.service((*path, "service")), reader.duration((*path, "timeout"))
    arguments = _parse_arguments(fields, path)
    retries = _parse_retries(reader, (*path, "retries"))
    instances = fields.integer((*path, "count")) or 1
    if len(fields.mistakes) > count or service is None or arguments is None:
        return None
    if not rate and think is None and not bursts:
        fields.reject(path, "this client sends no request: add `rate`, `think` or `bursts`")
    deadline = min(timeout or REQUEST_TIMEOUT, REQUEST_TIMEOUT)
    if service.median >= deadline:
        what = (
            "`timeout` is not longer than" if deadline == timeout else "kube-apiserver ends requests after 60s, within"
        )
        key = "timeout" if deadline == timeout else "service"
        fields.reject((*path, key), f"{what} the median service time: most requests would never succeed")
    client = SimulatedClient(name, path, arguments, service, instances, rate, think, bursts, retries, deadline)
    if NUMBER in name and not client.differ:
        message = (
            f"also write `{NUMBER}` in `as`, `groups` or `request`, so that each client has its own user or request"
        )
        fields.reject((*path, "name"), f"`{NUMBER}` in `name` does not make the clients different: {message}")
    return client


def _parse_arguments(fields: Fields, path: Path) -> RequestArguments | None:
    """Return the arguments of a client's request, or None if the request is invalid.

    If the client has several instances, only the request of the first instance is checked.
    """
    text, user = fields.string((*path, "request")), fields.string((*path, "as"))
    groups = tuple(fields.strings((*path, "groups")).values())
    if not text:
        return None
    try:
        arguments = parse_command_line(text, user or None, groups)
        SimulatedClient("", path, arguments, ServiceTime(0)).arguments_of(0).to_request()
    except UserError as error:
        fields.reject((*path, "request"), str(error))
        return None
    return arguments


def _parse_burst(reader: _LoadFields, path: Path) -> Burst:
    fields = reader.fields
    if not fields.check_keys(path, ("at", "requests", "over")):
        return Burst(0, 0)
    for key in ("at", "requests"):
        if not fields.has((*path, key)):
            fields.reject(path, f"this burst has no `{key}`")
    at = reader.duration((*path, "at"), minimum=0)
    if at is not None and at >= reader.duration_of_load > 0:
        fields.reject((*path, "at"), "this burst begins after the end of the load: lower `at`, or raise `duration`")
    over = reader.duration((*path, "over"))
    if at is not None and over is not None and at < reader.duration_of_load < at + over:
        fields.reject((*path, "over"), "this burst ends after the end of the load: lower `over`, or raise `duration`")
    return Burst(at or 0, fields.integer((*path, "requests")) or 0, over or 0)


def _parse_retries(reader: _LoadFields, path: Path) -> Retries | None:
    fields = reader.fields
    if not fields.has(path) or not fields.check_keys(path, ("on429", "max")):
        return None
    maximum = fields.integer((*path, "max"))
    if not fields.has((*path, "max")):
        fields.reject(path, "`max` is missing: add the maximum number of retries of one request")
    elif maximum is not None and maximum > MAX_RETRIES:
        fields.reject((*path, "max"), f"at most {MAX_RETRIES} retries are possible")
    delay = None
    wait = fields.value((*path, "on429"))
    if isinstance(wait, str) and parse_duration(wait) is None and wait != _RETRY_AFTER:
        fields.reject((*path, "on429"), f"expected `{_RETRY_AFTER}`, or a duration such as 2s, not {quote(wait)}")
    elif wait not in (None, _RETRY_AFTER):
        delay = reader.duration((*path, "on429"))
    return Retries(maximum or 1, delay)


def _parse_resources(fields: Fields, key: str) -> dict[str, ResourceKey]:
    """Return a mapping from each resource name in the mapping at `key` to its API group and resource.

    `key` is a field of the load file, such as `objects` in `objects: {pods: 4000}`. The result is empty
    if the file does not have the field. Invalid names are reported and left out.
    """
    value = fields.value((key,))
    if not fields.has((key,)):
        return {}
    if not isinstance(value, dict):
        fields.reject((key,), f"expected a mapping from resources to numbers, as in `{key}: {{pods: 4000}}`")
        return {}
    resources: dict[str, ResourceKey] = {}
    for name in value:
        try:
            target = infer_resource(name)
        except UserError as error:
            fields.reject((key, name), str(error), key=True)
        else:
            resources[name] = target.group, target.name
    return resources


def _parse_objects(fields: Fields, path: Path) -> ObjectCount:
    """Return the number and size of objects at `path`: an integer, or a mapping with `count` and `size`.

    Report an invalid value, and use 0 objects or the default size instead.
    """
    if not isinstance(fields.value(path), dict):
        return ObjectCount(fields.integer(path) or 0, DEFAULT_OBJECT_BYTES)
    fields.check_keys(path, ("count", "size"))
    if not fields.has((*path, "count")):
        fields.reject(path, "`count` is missing: add the number of stored objects")
    size = DEFAULT_OBJECT_BYTES
    if fields.has((*path, "size")):
        value = fields.value((*path, "size"))
        match = _SIZE.fullmatch(str(value)) if isinstance(value, str | int) else None
        if match is None or not int(match[1]):
            fields.reject(
                (*path, "size"), f"expected a size such as 8Ki or 20k, not {fields.document.text((*path, 'size'))}"
            )
        else:
            size = int(match[1]) * _SIZE_FACTORS[match[2]]
    return ObjectCount(fields.integer((*path, "count")) or 0, size)
