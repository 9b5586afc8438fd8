"""The wrappers of audit logs: text and JSON objects that log collectors and cloud services put around an audit event.

`WRAPPERS` is the table of all formats. This module unwraps events in Python, and `apflint.replay.wrapper_sql`
translates the table to SQL for DuckDB and Spark. A wrapper is recognized by the text before the event, or by the keys
of the object around the event. A value with one of the keys `EVENT_KEYS` is an audit event itself, and is never
unwrapped.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.requests.converted_records import (
    convert_azure_row,
    convert_google_record,
    is_azure_row,
    is_google_record,
)
from apflint.requests.lenient_json import may_be_lenient, parse_leniently
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Wrapper(NamedTuple):
    """The format of a wrapper. Exactly one of `prefix`, `path`, `items` and `convert` is set, and locates the audit event.

    `PLAIN` and `JSON_ARRAY` are exceptions: they set none of these fields, and stand for an audit event without a wrapper, and
    for a JSON array of records.
    """

    name: str
    source: str
    """Page or specification that describes the format."""
    prefix: str = ""
    """Regular expression for the text before the event in a line.

    Python, DuckDB and Java (Spark) must evaluate the expression equally.
    """
    suffix: str = ""
    """Text after the event in a line."""
    path: tuple[str, ...] = ()
    """Path of keys to the event. The event is an object, or a string that contains JSON."""
    server: tuple[str, ...] = ()
    """Path of keys to the name of the API server, or to the name of the stream or host that identifies the server."""
    category: str = ""
    """Key of the category of a record. If the key is present and its value is not in `AUDIT_CATEGORIES`, the record is only counted,
    because it contains no audit event."""
    items: str = ""
    """Key of the list of records that the wrapper contains."""
    expand: Callable[[dict[str, object]], list[Record]] | None = None
    """Function that returns the records, or None if the value of `items` is a list of records."""
    recognize: Callable[[dict[str, object]], bool] | None = None
    convert: Callable[[dict[str, object]], object] | None = None
    """Function that converts a record for which `recognize` returns True into an audit event."""


class Record(NamedTuple):
    """A value that a wrapper contains: an audit event, or a further wrapper around it."""

    value: object
    server: str = ""
    """Name of the API server, or "" if the wrapper does not contain the name."""


def _expand_hits(value: dict[str, Any]) -> list[Record]:
    """Return the documents in the result of a search in Elasticsearch or OpenSearch (`hits`)."""
    return [Record(hit) for hit in _list(value["hits"], "hits")]


def _expand_otlp(value: dict[str, Any]) -> list[Record]:
    """Return the log records of an OTLP request, each with the name of its API server.

    The name comes from an attribute of the OTLP resource. It is an empty string if there is no such
    attribute.
    """
    return [
        Record(record, _find_otlp_server(_object(resource, "resource")))
        for resource in _list(value, "resourceLogs")
        for scope in _list(resource, "scopeLogs")
        for record in _list(scope, "logRecords")
    ]


def _find_otlp_server(resource: dict[str, Any]) -> str:
    attributes = {
        attribute.get("key"): _object(attribute, "value").get("stringValue")
        for attribute in _list(resource, "attributes")
        if isinstance(attribute, dict) and isinstance(attribute.get("key"), str)
    }
    return next((name for key in OTLP_SERVERS if isinstance(name := attributes.get(key), str)), "")


def _expand_loki(value: dict[str, Any]) -> list[Record]:
    """Return the log lines in the result of a query to Loki's HTTP API, in which each entry is [time, line]."""
    return [
        Record({"line": pair[1]}, _find_string(stream, ("stream", "pod")))
        for stream in _list(value["data"], "result")
        for pair in _list(stream, "values")
        if isinstance(pair, list) and len(pair) > 1
    ]


def _expand_tables(value: dict[str, Any]) -> list[Record]:
    """Return the rows in the result of a query to Azure Log Analytics as objects."""
    records = []
    for table in _list(value, "tables"):
        names = [column.get("name") for column in _list(table, "columns") if isinstance(column, dict)]
        records += [
            Record({name: field for name, field in zip(names, row, strict=False) if isinstance(name, str)})
            for row in _list(table, "rows")
            if isinstance(row, list)
        ]
    return records


def _object(value: object, key: str) -> dict[str, Any]:
    """Return the object at a key, or {} if there is no object at this key."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _list(value: object, key: str) -> list[Any]:
    """Return the list at a key, or [] if there is no list at this key."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _find(value: object, keys: Sequence[str]) -> object:
    """Return the value at a path of keys, or None if the path does not exist."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _find_string(value: object, keys: Sequence[str]) -> str:
    """Return the string at a path of keys, or "" if there is no string at this path."""
    found = _find(value, keys) if keys else None
    return found if isinstance(found, str) else ""


AUDIT_CATEGORIES = ("kube-audit", "kube-audit-admin")
"""Categories of Azure log records that contain audit events."""
EVENT_KEYS = ("kind", "stage", "requestURI", "auditID")
"""Keys of audit events. A value with one of them is not unwrapped."""
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]+(Z|[+-][0-9]{2}:?[0-9]{2})?"
_TAG = r"[0-9A-Za-z_./@-]+(\[[^\]{ ]*\])?"
_CRI = "CRI (containerd, CRI-O)"
OTLP_SERVERS = ("k8s.pod.name", "k8s.node.name", "host.name")
"""Attributes of an OTLP resource that contain the name of the API server. The first of them is used."""
MESSAGE_TYPE, CONTROL_MESSAGE = "messageType", "CONTROL_MESSAGE"
"""Key of the type of a CloudWatch batch, and the type of a batch without events."""
BATCH_KEYS = (MESSAGE_TYPE, "logGroup")
"""Keys of each batch of a CloudWatch subscription, if a line contains several batches."""
_DOCKER = "Docker json-file, Fluent Bit, Fluentd"

PLAIN = Wrapper("audit log of kube-apiserver", "https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/")
JSON_ARRAY = Wrapper("JSON array", "https://www.rfc-editor.org/rfc/rfc8259")
WRAPPERS: tuple[Wrapper, ...] = (
    PLAIN,
    Wrapper(
        _CRI,
        "https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md",
        prefix=_TIME + r" (stdout|stderr) F(:[0-9A-Za-z]+)* ",
    ),
    Wrapper(
        "CloudWatch export to S3, kubectl logs --timestamps",
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/S3Export.html",
        prefix=r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][^ {]+ ((UTC|[+-][0-9]{2}:?[0-9]{2}) )?",
    ),
    Wrapper(
        "syslog, journalctl -o short",
        "https://www.rfc-editor.org/rfc/rfc3164 and journalctl(1)",
        prefix=r"(<[0-9]{1,3}>)?([A-Z][a-z]{2} +[0-9]{1,2} [0-9:.]+|" + _TIME + ") [^ {]+ " + _TAG + ": ?",
    ),
    Wrapper(
        "syslog of RFC 5424",
        "https://www.rfc-editor.org/rfc/rfc5424",
        prefix=r"<[0-9]{1,3}>1 [^ {]+ [^ {]+ [^ {]+ [^ {]+ [^ {]+ (-|\[[^{]*\]) " + "\ufeff?",
    ),
    Wrapper(
        "Fluentd out_file",
        "https://docs.fluentd.org/output/file",
        prefix=_TIME + "\t[^\t{]*\t",
    ),
    Wrapper(
        "Fluent Bit file output",
        "https://docs.fluentbit.io/manual/pipeline/outputs/file",
        prefix=r"[^ :{]+: \[[0-9.]+, ?",
        suffix="]",
    ),
    Wrapper(
        "kubectl logs --prefix",
        "https://kubernetes.io/docs/reference/kubectl/generated/kubectl_logs/",
        prefix=r"\[[^ \]{]+\] (" + _TIME + " )?",
    ),
    Wrapper(
        "AKS diagnostic setting to a storage account or an event hub",
        "https://learn.microsoft.com/azure/aks/monitor-aks-reference",
        path=("properties", "log"),
        server=("properties", "pod"),
        category="category",
    ),
    Wrapper(
        _DOCKER,
        "https://docs.docker.com/engine/logging/drivers/json-file/ and https://docs.fluentbit.io/manual/pipeline/parsers/json",
        path=("log",),
        server=("kubernetes", "pod_name"),
    ),
    Wrapper(
        "CloudWatch filter-log-events, Vector, Filebeat",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html"
        " and https://vector.dev/docs/reference/configuration/sources/kubernetes_logs/",
        path=("message",),
        server=("logStreamName",),
    ),
    Wrapper(
        "CloudWatch Logs Insights",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetQueryResults.html",
        path=("@message",),
        server=("@logStream",),
    ),
    Wrapper(
        "Loki: logcli --output=jsonl",
        "https://grafana.com/docs/loki/latest/query/logcli/",
        path=("line",),
        server=("labels", "pod"),
    ),
    Wrapper(
        "Splunk export of a search",
        "https://docs.splunk.com/Documentation/Splunk/latest/RESTREF/RESTsearch",
        path=("result", "_raw"),
        server=("result", "host"),
    ),
    Wrapper(
        "Splunk event",
        "https://docs.splunk.com/Documentation/Splunk/latest/RESTREF/RESTsearch",
        path=("_raw",),
        server=("host",),
    ),
    Wrapper(
        "Splunk HTTP Event Collector",
        "https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector",
        path=("event",),
        server=("host",),
    ),
    Wrapper(
        "Elasticsearch and OpenSearch hit",
        "https://www.elastic.co/guide/en/elasticsearch/reference/current/search-search.html",
        path=("_source",),
    ),
    Wrapper(
        "Elastic integration for Kubernetes audit logs",
        "https://www.elastic.co/docs/reference/integrations/kubernetes/audit-logs",
        path=("kubernetes", "audit"),
    ),
    Wrapper(
        "OTLP log record",
        "https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding",
        path=("body", "stringValue"),
    ),
    Wrapper(
        "Azure Log Analytics table AzureDiagnostics",
        "https://learn.microsoft.com/azure/azure-monitor/reference/tables/azurediagnostics",
        path=("log_s",),
        server=("pod_s",),
        category="Category",
    ),
    Wrapper(
        "Azure Log Analytics table ContainerLogV2",
        "https://learn.microsoft.com/azure/azure-monitor/reference/tables/containerlogv2",
        path=("LogMessage",),
        server=("PodName",),
    ),
    Wrapper(
        "Azure Log Analytics table AWSEKSLogs",
        "https://learn.microsoft.com/azure/azure-monitor/reference/tables/awsekslogs",
        path=("RawEvent",),
    ),
    Wrapper(
        "Google Cloud Logging of clusters outside GKE, jsonPayload",
        "https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry",
        path=("jsonPayload",),
    ),
    Wrapper(
        "Google Cloud Logging of clusters outside GKE, textPayload",
        "https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry",
        path=("textPayload",),
    ),
    Wrapper(
        "journalctl -o json",
        "https://systemd.io/JOURNAL_EXPORT_FORMATS/",
        path=("MESSAGE",),
        server=("_HOSTNAME",),
    ),
    Wrapper(
        "GKE: Cloud Audit Logs, also of BigQuery",
        "https://cloud.google.com/logging/docs/reference/audit/auditlog/rest/Shared.Types/AuditLog",
        recognize=is_google_record,
        convert=convert_google_record,
    ),
    Wrapper(
        "Azure Log Analytics tables AKSAudit, AKSAuditAdmin, ArcK8sAudit",
        "https://learn.microsoft.com/azure/azure-monitor/reference/tables/AKSAudit",
        recognize=is_azure_row,
        convert=convert_azure_row,
    ),
    Wrapper(
        "Kubernetes list, batch of an audit webhook",
        "https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/",
        items="items",
    ),
    Wrapper(
        "AKS event hub",
        "https://learn.microsoft.com/azure/azure-monitor/platform/stream-monitoring-data-event-hubs",
        items="records",
    ),
    Wrapper(
        "CloudWatch filter-log-events",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html",
        items="events",
    ),
    Wrapper(
        "CloudWatch Logs Insights",
        "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetQueryResults.html",
        items="results",
    ),
    Wrapper(
        "CloudWatch subscription",
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html",
        items="logEvents",
        server=("logStream",),
    ),
    Wrapper(
        "Elasticsearch and OpenSearch search",
        "https://www.elastic.co/guide/en/elasticsearch/reference/current/search-search.html",
        items="hits",
        expand=_expand_hits,
    ),
    Wrapper(
        "OTLP JSON",
        "https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding",
        items="resourceLogs",
        expand=_expand_otlp,
    ),
    Wrapper(
        "Loki query",
        "https://grafana.com/docs/loki/latest/reference/loki-http-api/",
        items="data",
        expand=_expand_loki,
    ),
    Wrapper(
        "Google Cloud Logging entries.list",
        "https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/list",
        items="entries",
    ),
    Wrapper(
        "Azure Log Analytics query",
        "https://learn.microsoft.com/azure/azure-monitor/logs/api/response-format",
        items="tables",
        expand=_expand_tables,
    ),
)
"""All wrappers. If a value matches several wrappers, the first of them is used."""
_PREFIXED = tuple(wrapper for wrapper in WRAPPERS if wrapper.prefix)
WRAPPED_IN_FIELD = tuple(wrapper for wrapper in WRAPPERS if wrapper.path)
_LISTS = tuple(wrapper for wrapper in WRAPPERS if wrapper.items)
_CONVERTED = tuple(wrapper for wrapper in WRAPPERS if wrapper.convert)
_FIRST_KEYS = frozenset(wrapper.path[0] for wrapper in WRAPPED_IN_FIELD)
_LIST_KEYS = frozenset(wrapper.items for wrapper in _LISTS)
_MATCHES = tuple((re.compile(wrapper.prefix, re.ASCII).fullmatch, wrapper) for wrapper in _PREFIXED)
_CRI_PART = re.compile(rf"{_TIME} (stdout|stderr) ([FP])(?::[0-9A-Za-z]+)* (.*)", re.ASCII | re.DOTALL)
_DECODER = json.JSONDecoder()
_SPACES = re.compile(r"[ \t\r\n]*")
MAX_DEPTH = 8
"""Maximum number of nested wrappers."""


class PartOfLine(NamedTuple):
    """A part of a line that a container runtime has split, because the line is longer than 16 KiB."""

    stream: str
    text: str
    is_last: bool


def find_prefix(line: str) -> Wrapper | None:
    """Return the wrapper whose prefix matches the start of a line, or None if no prefix matches."""
    if line[:1] in ("{", ""):
        return None
    at = line.find("{")
    prefix = line[:at] if at > 0 else ""
    if prefix:
        for match, wrapper in _MATCHES:
            if match(prefix):
                return wrapper
    return None


def strip_prefix(line: str) -> str:
    """Return a line without the text that a wrapper puts before and after the event."""
    wrapper = find_prefix(line)
    if wrapper is None:
        return line
    return line[line.index("{") :].rstrip().removesuffix(wrapper.suffix) if wrapper.suffix else line[line.index("{") :]


def find_part(line: str) -> PartOfLine | None:
    """Return the part of an event in a line of a container runtime (CRI format), or None for other lines."""
    match = _CRI_PART.fullmatch(line) if line[:1].isdigit() else None
    return PartOfLine(match[2], match[4], match[3] == "F") if match else None


def find_open_part(value: object) -> PartOfLine | None:
    """Return the part of a line that a record of Docker's `json-file` contains at `log`.

    Docker splits a long line into several records. The part is the last part of its line if it ends
    with a line break. Return None if the value is not a record with a string at `log`.
    """
    log = value.get("log") if isinstance(value, dict) else None
    if not isinstance(log, str):
        return None
    return PartOfLine(str(value.get("stream", "")), log, log.endswith("\n"))  # type: ignore[attr-defined]


def is_event(value: dict[str, object]) -> bool:
    """Return whether an object has a field of an audit event, so that it is not a wrapper."""
    return any(value.get(key) is not None for key in EVENT_KEYS)


def unwrap_list(value: object) -> list[Record] | None:
    """Return the records in a list or in a batch of records, or None for any other value."""
    if isinstance(value, list):
        return None if _is_row(value) else [Record(item) for item in value]
    if not isinstance(value, dict) or value.keys().isdisjoint(_LIST_KEYS) or value.get("stage") is not None:
        return None
    for wrapper in _LISTS:
        found = value.get(wrapper.items)
        if wrapper.expand is not None:
            if isinstance(found, dict | list) and (records := wrapper.expand(value)):
                return records
        elif isinstance(found, list):
            server = _find_string(value, wrapper.server)
            return [Record(item, server) for item in found]
    return None


def find_list(value: object) -> Wrapper | None:
    """Return the wrapper of a list of records, or None for any other value."""
    if unwrap_list(value) is None:
        return None
    if not isinstance(value, dict):
        return JSON_ARRAY
    return next(wrapper for wrapper in _LISTS if isinstance(value.get(wrapper.items), dict | list))


def split_batches(text: str) -> list[object]:
    """Return the batches of a CloudWatch subscription in a line, or an empty list for any other line.

    Amazon Data Firehose writes batches without line breaks between them.
    """
    batches: list[object] = []
    at = 0
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        if not (isinstance(value, dict) and all(key in value for key in BATCH_KEYS)):
            return []
        batches.append(value)
        at = _skip_spaces(text, at)
    return batches


def _skip_spaces(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    return match.end() if match else at


def is_other_log(value: object) -> bool:
    """Return whether a value is a log record whose fields show that it does not contain an audit event.

    Examples are Azure log records of other categories, such as `kube-scheduler`, and control messages of CloudWatch.
    """
    if not isinstance(value, dict):
        return False
    field = find_field(value)
    if field is None:
        return value.get(MESSAGE_TYPE) == CONTROL_MESSAGE
    return bool(field.category) and value.get(field.category) not in (None, *AUDIT_CATEGORIES)


def find_field(value: object, event_field: Sequence[str] = ()) -> Wrapper | None:
    """Return the wrapper that states which field of a log record contains the event, or None if no field does.

    If the record has a value at the path `event_field` (`--event-field`), the result is a wrapper for this path.
    """
    if not isinstance(value, dict):
        return None
    if event_field and _find(value, event_field) is not None:
        return Wrapper("--event-field", "", path=tuple(event_field))
    if value.keys().isdisjoint(_FIRST_KEYS) or is_event(value):
        return None
    return next((wrapper for wrapper in WRAPPED_IN_FIELD if isinstance(_find(value, wrapper.path), str | dict)), None)


def is_bare(value: object, wrapper: Wrapper) -> bool:
    """Return whether the field `wrapper.path` of a log record contains an event without a prefix.

    The event is a JSON object, or a string that begins with `{`. Some logs have a prefix before the
    event, such as a time. For these logs, return False.
    """
    found = _find(value, wrapper.path)
    return isinstance(found, dict) or (isinstance(found, str) and found.startswith("{"))


def unwrap(value: object, event_field: Sequence[str] = ()) -> Record | None:
    """Return the content of a log record, or None for a value that is not a log record.

    `event_field` is the path of keys to the event, for a format that is not in `WRAPPERS`. Raises UserError if the
    content is not JSON, or if the record does not describe a request to kube-apiserver.
    """
    if isinstance(value, list):  # a row of CloudWatch Logs Insights, which is a list of fields
        fields = {field["field"]: field["value"] for field in value} if _is_row(value) else {}
        return unwrap(fields) if "@message" in fields else None
    if not isinstance(value, dict) or (not event_field and is_event(value)):
        return None
    field = find_field(value, event_field)
    if field is not None:
        if field.category:
            _require_audit_category(value.get(field.category))
        content = _read_content(_find(value, field.path), ".".join(field.path))
        return Record(content, _find_string(value, field.server))
    if is_event(value):
        return None
    for wrapper in _CONVERTED:
        if wrapper.recognize is not None and wrapper.convert is not None and wrapper.recognize(value):
            return Record(wrapper.convert(value), _find_string(value, wrapper.server))
    return None


def unwrap_event(value: object) -> object:
    """Remove all wrappers around an audit event. Return any other value unchanged. Raises UserError as `unwrap` does."""
    for _ in range(MAX_DEPTH):
        record = unwrap(value)
        if record is None:
            break
        value = record.value
    return value


def _require_audit_category(category: object) -> None:
    if category is not None and category not in AUDIT_CATEGORIES:
        raise UserError(f'this Azure log record has the category "{category}", which is not an audit log')


def _read_content(found: object, field: str) -> object:
    """Return the value in a field of a log record. Raises UserError if the value is a string that is not JSON."""
    if not isinstance(found, str):
        return found
    try:
        return parse_json(strip_prefix(found.lstrip()))
    except (ValueError, RecursionError):
        raise UserError(f'"{field}" of this log record is not an audit event in JSON') from None


def parse_json(text: str) -> object:
    """Return the value of a JSON text. Integers with more digits than Python permits become infinity.

    If only `parse_leniently` accepts the text, return the value that `parse_leniently` returns.

    Raises ValueError for text that is not JSON, and for escapes of lone surrogates, which are not valid Unicode text. Raises
    RecursionError for text that is nested deeply and is not JSON.
    """
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        if may_be_lenient(error, text):
            with suppress(ValueError):
                return parse_leniently(text)
        raise
    except ValueError:
        value = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 1000 else inf)
    if "\\u" in text and "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _is_row(items: list[Any]) -> bool:
    """Return whether a list is a row of CloudWatch Logs Insights, which is a list of fields."""
    return bool(items) and all(isinstance(item, dict) and {*item} == {"field", "value"} for item in items)
