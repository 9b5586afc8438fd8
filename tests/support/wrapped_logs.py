"""Audit logs in each wrapper that `apflint replay` reads, made from the lines of a plain log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TIME = "2026-11-22T05:49:20.098236000Z"
_GROUP = {"owner": "000000000000", "logGroup": "/aws/eks/demo/cluster", "logStream": "kube-apiserver-audit-1"}
_RESOURCE = {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": "server-1"}}]}
_COLUMNS = {
    "AuditId": "auditID",
    "Stage": "stage",
    "RequestUri": "requestURI",
    "Verb": "verb",
    "User": "user",
    "UserAgent": "userAgent",
    "ImpersonatedUser": "impersonatedUser",
    "ObjectRef": "objectRef",
    "ResponseStatus": "responseStatus",
    "RequestReceivedTime": "requestReceivedTimestamp",
    "StageReceivedTime": "stageTimestamp",
    "Annotations": "annotations",
}


def write_json(value: object) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _split_cri(line: str) -> str:
    *parts, last = [line[at : at + 700] for at in range(0, len(line), 700)] or [""]
    return "".join(f"{TIME} stdout P {part}\n" for part in parts) + f"{TIME} stdout F {last}"


def _split_docker(line: str) -> str:
    parts = [line[at : at + 700] for at in range(0, len(line), 700)] or [""]
    parts[-1] += "\n"
    return "\n".join(write_json({"log": part, "stream": "stdout", "time": TIME}) for part in parts)


def _aks(line: str, key: str = "properties") -> str:
    record = {
        "category": "kube-audit",
        "operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read",
    }
    return write_json({**record, "time": TIME, key: {"log": f"{line}\n", "stream": "stdout", "pod": "server-1"}})


LINES: dict[str, Callable[[str], str]] = {
    "CRI": lambda line: f"{TIME} stdout F {line}",
    "CRI with an offset": lambda line: f"2026-11-22T06:49:20.098236000+01:00 stderr F {line}",
    "CRI with tags": lambda line: f"{TIME} stdout F:x {line}",
    "CloudWatch export": lambda line: f"2026-11-22T05:49:20.098Z {line}",
    "kubectl logs --prefix": lambda line: f"[pod/kube-apiserver-1/kube-apiserver] {line}",
    "kubectl logs --prefix --timestamps": lambda line: f"[pod/kube-apiserver-1/kube-apiserver] {TIME} {line}",
    "syslog": lambda line: f"Nov 22 05:49:20 node-1 kube-apiserver[811]: {line}",
    "syslog with a priority": lambda line: f"<14>Nov  2 05:49:20 node-1 audit: {line}",
    "journalctl -o short-iso": lambda line: f"2026-11-22T05:49:20+0000 node-1 kube-apiserver[811]: {line}",
    "syslog of RFC 5424": lambda line: f"<14>1 {TIME} node-1 audit 811 - - {line}",
    "syslog of RFC 5424 with data": lambda line: f'<14>1 {TIME} node-1 audit 811 ID47 [x@1 a="b"] {line}',
    "Fluentd out_file": lambda line: f"2026-11-22T05:49:20+00:00\tkube.audit\t{line}",
    "Fluentd out_file with log": lambda line: f"2026-11-22T05:49:20+00:00\tkube.audit\t{write_json({'log': line})}",
    "Fluent Bit file output": lambda line: f"kube.audit: [1795326560.098236, {write_json({'log': line})}]",
    "AKS storage account": _aks,
    "Docker": lambda line: write_json({"log": f"{line}\n", "stream": "stdout", "time": TIME}),
    "Fluent Bit": lambda line: write_json(
        {"date": 1795326560.098236, "stream": "stdout", "log": line, "kubernetes": {"pod_name": "server-1"}}
    ),
    "Fluent Bit with CRI": lambda line: write_json({"date": 1795326560.0, "log": f"{TIME} stdout F {line}"}),
    "Vector": lambda line: write_json({"file": "/var/log/audit.log", "message": line, "source_type": "file"}),
    "journalctl -o json": lambda line: write_json({"_HOSTNAME": "server-1", "PRIORITY": "6", "MESSAGE": line}),
    "Loki": lambda line: write_json({"labels": {"job": "audit", "pod": "server-1"}, "line": line, "timestamp": TIME}),
    "Splunk export": lambda line: write_json(
        {"preview": False, "offset": 1, "result": {"_raw": line, "host": "server-1", "_time": TIME}}
    ),
    "Splunk event": lambda line: write_json({"_raw": line, "host": "server-1"}),
    "Splunk HTTP Event Collector": lambda line: write_json({"time": 1795326560, "host": "server-1", "event": line}),
    "Elasticsearch": lambda line: write_json({"_index": "audit", "_id": "1", "_source": {"message": line}}),
    "Elasticsearch without a wrapper inside": lambda line: f'{{"_index":"audit","_id":"1","_source":{line}}}',
    "Elastic integration": lambda line: f'{{"@timestamp":"{TIME}","kubernetes":{{"audit":{line}}}}}',
    "OTLP record": lambda line: write_json({"timeUnixNano": "1795326560098236000", "body": {"stringValue": line}}),
    "AzureDiagnostics": lambda line: write_json({"Category": "kube-audit", "log_s": line, "pod_s": "server-1"}),
    "ContainerLogV2": lambda line: write_json({"PodName": "server-1", "LogSource": "stdout", "LogMessage": line}),
    "AWSEKSLogs": lambda line: write_json({"ClusterName": "demo", "RawEvent": line}),
    "Google Cloud Logging": lambda line: f'{{"insertId":"1","logName":"x","jsonPayload":{line}}}',
    "Google Cloud Logging as text": lambda line: write_json({"insertId": "1", "textPayload": line}),
    "CloudWatch Logs Insights": lambda line: write_json([{"field": "@message", "value": line}]),
}
"""For each wrapper around single lines, a function that wraps a line."""
SPLIT_LINES: dict[str, Callable[[str], str]] = {"CRI in parts": _split_cri, "Docker in parts": _split_docker}
"""For each wrapper in which a container runtime splits long lines, a function that wraps a line."""


def _azure_row(line: str, *, as_text: bool) -> dict[str, Any]:
    event = json.loads(line)
    values = {column: event.get(field) for column, field in _COLUMNS.items()}
    row = {
        column: write_json(value) if as_text and isinstance(value, dict) else value or ("" if as_text else None)
        for column, value in values.items()
    }
    return {**row, "PodName": "server-1", "TimeGenerated": TIME}


def _tables(lines: Sequence[str]) -> str:
    rows = [_azure_row(line, as_text=True) for line in lines]
    columns = [{"name": name, "type": "string"} for name in rows[0]]
    return write_json(
        {"tables": [{"name": "PrimaryResult", "columns": columns, "rows": [[*row.values()] for row in rows]}]}
    )


def _subscription(lines: Sequence[str]) -> str:
    events = [{"id": str(number), "timestamp": 1795326560098, "message": line} for number, line in enumerate(lines)]
    return write_json({"messageType": "DATA_MESSAGE", **_GROUP, "subscriptionFilters": ["x"], "logEvents": events})


LOGS: dict[str, Callable[[Sequence[str]], str]] = {
    "EventList": lambda lines: f'{{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{",".join(lines)}]}}',
    "JSON list": lambda lines: f"[{','.join(lines)}]",
    "AKS event hub": lambda lines: f'{{"records":[{",".join(map(_aks, lines))}]}}',
    "CloudWatch filter-log-events": lambda lines: write_json(
        {"events": [{"logStreamName": "server-1", "message": line} for line in lines], "searchedLogStreams": []}
    ),
    "CloudWatch Logs Insights results": lambda lines: write_json(
        {
            "results": [
                [{"field": "@logStream", "value": "server-1"}, {"field": "@message", "value": line}] for line in lines
            ]
        }
    ),
    "CloudWatch subscription": lambda lines: (
        f'{{"messageType":"CONTROL_MESSAGE","logEvents":[]}}\n{_subscription(lines)}'
    ),
    "CloudWatch subscription of Firehose": lambda lines: _subscription(lines[:9]) + _subscription(lines[9:]),
    "Elasticsearch search": lambda lines: write_json(
        {"took": 1, "hits": {"total": {}, "hits": [{"_source": json.loads(line)} for line in lines]}}
    ),
    "OTLP": lambda lines: write_json(
        {
            "resourceLogs": [
                {
                    "resource": _RESOURCE,
                    "scopeLogs": [{"scope": {}, "logRecords": [{"body": {"stringValue": line}} for line in lines]}],
                }
            ]
        }
    ),
    "Loki query": lambda lines: write_json(
        {
            "status": "success",
            "data": {
                "resultType": "streams",
                "result": [{"stream": {"pod": "server-1"}, "values": [["1", x] for x in lines]}],
            },
        }
    ),
    "AKSAudit": lambda lines: "\n".join(write_json(_azure_row(line, as_text=False)) for line in lines),
    "AKSAudit as text": lambda lines: write_json([_azure_row(line, as_text=True) for line in lines]),
    "AKSAudit tables": _tables,
    "Google Cloud Logging entries": lambda lines: write_json({"entries": [{"textPayload": line} for line in lines]}),
}
"""For each wrapper around several events, a function that wraps the lines of a log. The lines must be events."""


def wrap_log(name: str, lines: Sequence[str]) -> str:
    """Return the text of a log in a wrapper of `LINES`, `SPLIT_LINES` or `LOGS`."""
    if name in LOGS:
        return LOGS[name](lines) + "\n"
    wrap = LINES.get(name) or SPLIT_LINES[name]
    return "".join(f"{wrap(line)}\n" for line in lines)
