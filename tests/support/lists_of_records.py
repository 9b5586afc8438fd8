"""Lists of audit events: nested in other wrappers, with hostile records, and with values that only look like lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.hostile_lines import HOSTILE_LINES
from support.wrapped_logs import LINES, LOGS, TIME, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EVENTS_PER_LIST = 7
_wrap_azure = LINES["AKS storage account"]


def _split(lines: Sequence[str]) -> list[Sequence[str]]:
    return [lines[start : start + _EVENTS_PER_LIST] for start in range(0, len(lines), _EVENTS_PER_LIST)]


def _parse(lines: Sequence[str]) -> list[Any]:
    return [json.loads(line) for line in lines]


def _azure(lines: Sequence[str], *others: Any) -> str:
    return f'{{"records":[{",".join([*map(_wrap_azure, lines), *map(write_json, others)])}]}}'


def _batch(lines: Sequence[str], stream: object = "server-1") -> str:
    events = [{"id": "1", "timestamp": 1795326560098, "message": line} for line in lines]
    return write_json({"messageType": "DATA_MESSAGE", "logGroup": "x", "logStream": stream, "logEvents": events})


def _resources(line: str, attributes: object, *others: object) -> str:
    scopes = [{"logRecords": [{"body": {"stringValue": line}}]}]
    return write_json({"resourceLogs": [{"resource": {"attributes": attributes}, "scopeLogs": scopes}, *others]})


def _attribute(key: str, value: object) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value}}


_OTHER_RESOURCES: tuple[tuple[object, ...], ...] = ((), ({}, 5))
_CONTROL = '{"messageType":"CONTROL_MESSAGE","logGroup":"x","logEvents":[]}'
_WRAPPED_LIST: dict[str, Callable[[Sequence[str]], str]] = {
    "list": _azure,
    "prefix": lambda lines: f"{TIME} stdout F {_azure(lines)}",
    "field": lambda lines: write_json({"log": _azure(lines), "kubernetes": {"pod_name": "server-2"}}),
    "field in a prefix": lambda lines: f"{TIME} stdout F {write_json({'log': LOGS['EventList'](lines)})}",
    "list in a list": lambda lines: write_json([{"items": _parse(lines)}]),
    "fields in a list": lambda lines: write_json(
        {"hits": {"hits": [{"_source": {"message": line}} for line in lines]}}
    ),
}
READ_BY_SPARK: dict[str, Callable[[Sequence[str]], str]] = {
    **{name: LOGS[name] for name in LOGS if name.startswith(("EventList", "JSON", "AKS event", "Elastic", "OTLP"))},
    **{name: LOGS[name] for name in LOGS if name.startswith("CloudWatch") and "Insights" not in name},
    "Google Cloud Logging entries": LOGS["Google Cloud Logging entries"],
    **{
        f"several lines: {name}": lambda lines, wrap=wrap: "\n".join(map(wrap, _split(lines)))  # type: ignore[misc]
        for name, wrap in _WRAPPED_LIST.items()
    },
    "other categories": lambda lines: "\n".join(
        _azure(part, {"category": "kube-scheduler", "properties": {"log": "I1122 x"}}) for part in _split(lines)
    ),
    "Firehose": lambda lines: "".join(map(_batch, _split(lines))) + _CONTROL + "\n" + " ".join([_CONTROL] * 2),
    "empty lists": lambda lines: '{"records":[]}\n[]\n{"logEvents":[]}\n' + "\n".join(lines),
}
"""Logs in lists that Spark's executors read alone. Each function wraps the lines of a log, which must be events."""


def _odd_items(lines: Sequence[str]) -> str:
    events = iter(lines)
    items = [
        *("5", "null", '"x"', '"{}"', "[1]", "{}", '{"a":1}', r'"\u007b}"', '" {}"', write_json(next(events))),
        *(f'{{"field":"@message","value":{write_json(next(events))}}}', _CONTROL, r'{"kind":"\ud800"}', "[[]]"),
        *(f'[{{"field":"@message","value":{write_json(next(events))}}}]', r'{"kind":"\ud83d\ude00"}', '{"log":"{"}'),
        r'{"log":"{\"kind\":\"\\ud83d\\ude00\"}"}',
    ]
    return "\n".join(f'{{"records":[{line},{item}]}}' for line, item in zip(events, items, strict=False))


def _other_lists(lines: Sequence[str]) -> str:
    events = iter(lines)

    def take() -> list[Any]:
        return _parse([next(events)])

    values: list[object] = [
        {"hits": take()},
        {"hits": {"hits": []}, "entries": take()},
        {"data": "x", "entries": take()},
        {"items": "x", "events": take()},
        {"items": {}, "entries": take()},
        {"items": json.dumps(take())},
        {"log": 5, "items": take()},
        {"message": next(events), "items": take()},
        {"kind": "X", "items": take()},
        {"stage": "X", "items": take()},
        [[take()]],
        [{"field": "@message", "value": next(events)}, {"field": "@logStream", "value": "server-3"}],
        [{"field": "x", "value": 5}],
        [{"field": "x", "value": 5, "z": 1}],
        {"resourceLogs": []},
    ]
    return "\n".join(map(write_json, values))


def _servers(lines: Sequence[str]) -> str:
    events = iter(lines)
    streams = (5, "5", "", None, True, "true", "a\x01b", "{x", "server-4", [1])
    attributes: tuple[object, ...] = (
        [],
        [_attribute("host.name", "node-1"), _attribute("k8s.node.name", "node-2")],
        [_attribute("host.name", "node-1"), _attribute("host.name", "node-3")],
        [{"key": "k8s.pod.name", "value": {"intValue": "5"}}, _attribute("host.name", 5)],
        [5],
        5,
    )
    batches = [_batch([next(events)], stream) for stream in streams]
    resources = [_resources(next(events), value, *others) for value in attributes for others in _OTHER_RESOURCES]
    return "\n".join([*batches, *resources])


def _damaged(lines: Sequence[str]) -> str:
    first, second = _azure(lines[:3]), _azure(lines[3:6])
    record = _wrap_azure(lines[6])
    return f"{first} x\n{first}{second}\n{second}]\n{record} x\n{record}{record}\n{_batch(lines[:2])}{second}\n"


def _wrap_hostile(wrap: Callable[[Sequence[str]], str]) -> Callable[[Sequence[str]], str]:
    return lambda lines: "\n".join(wrap([lines[0], line, lines[1]]) for line in HOSTILE_LINES)


READ_BY_PYTHON: dict[str, Callable[[Sequence[str]], str]] = {
    **{name: wrap for name, wrap in LOGS.items() if name not in READ_BY_SPARK},
    "odd items": _odd_items,
    "values that look like lists": _other_lists,
    "names of servers": _servers,
    "damaged": _damaged,
    "one value over several lines": lambda lines: json.dumps({"records": _parse(lines)}, indent=1),
    "array in an array": lambda lines: "\n".join(f"[[{','.join(part)}]]" for part in _split(lines)),
    "wrappers in lists in wrappers in lists": lambda lines: "\n".join(
        _batch([write_json({"items": [{"log": line} for line in part]})]) for part in _split(lines)
    ),
    "hostile lines": lambda _: "\n".join(HOSTILE_LINES),
    "hostile lines in Azure": _wrap_hostile(_azure),
    "hostile lines in a batch": _wrap_hostile(_batch),
    "hostile lines in OTLP": _wrap_hostile(LOGS["OTLP"]),
    "hostile items": _wrap_hostile(lambda lines: f'{{"items":[{",".join(lines)}]}}'),
    "hostile arrays": _wrap_hostile(lambda lines: f"[{','.join(lines)}]"),
    "hostile batches": _wrap_hostile(lambda lines: "".join(_batch([line]) for line in lines)),
    "hostile text after a list": _wrap_hostile(lambda lines: _azure(lines[:1]) + lines[1]),
}
"""Logs in lists of which Python reads at least some lines or records."""
