"""Lines of audit logs that are not valid events, or that parsers of JSON read differently."""

from __future__ import annotations

import json

from support.audit_logs import event

BAD_LINES = [
    ("", None),
    ("   ", None),
    ('{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"Respo', "this is not JSON"),
    ("\x00\x01\x02", "this is not JSON"),
    ("2026-11-22 05:49:20 GET /healthz 200", "this is not JSON"),
    ('{"kind":"Pod","apiVersion":"v1"}', "this is v1 Pod, not an audit.k8s.io Event"),
    ("[1, 2]", "an audit event must be a JSON object, not a number"),
    ('"text"', "an audit event must be a JSON object, not a string"),
    (json.dumps(event(stage=None)), "the event has no stage"),
    (json.dumps(event(stage="Sent")), 'unknown stage "Sent"'),
    (json.dumps(event(verb=5)), '"verb" must be a string, not a number'),
    (json.dumps(event(verb=None)), '"verb" is missing'),
    (json.dumps(event(user="alice")), '"user" must be a JSON object, not a string'),
    (json.dumps(event(user={"username": "a", "groups": "b"})), '"groups" must be a list of strings'),
    (json.dumps(event(user={"username": "a", "groups": [1]})), '"groups" must be a list of strings'),
    (json.dumps(event(objectRef=[1])), '"objectRef" must be a JSON object, not a list'),
    (json.dumps(event(objectRef={"resource": {}})), '"resource" must be a string, not an object'),
    (json.dumps(event(objectRef=None, requestURI=None)), '"requestURI" is missing'),
    (json.dumps(event(annotations="x")), '"annotations" must be a JSON object, not a string'),
    (json.dumps(event(responseStatus=[1])), '"responseStatus" must be a JSON object, not a list'),
    (json.dumps(event(auditID={"a": 1})), '"auditID" must be a string, not an object'),
    *(
        (
            json.dumps(event(**{field: time})),
            f'"{field}" is not a time in the years 1970 to 2999: "{time}"',
        )
        for field in ("requestReceivedTimestamp", "stageTimestamp")
        for time in (
            "yesterday",
            "0001-01-01T00:00:00.000000Z",
            "9999-12-31T23:59:59.999999Z",
            "2026-11-22T23:59:60.000000Z",
            "2026-11-22T24:00:00.000000Z",
            "2026-11-22T05:49:20.0000 0Z",
            "2026-11-22T05:49:20",
        )
    ),
    (json.dumps(event(responseStatus={"code": 10**400})), '"responseStatus.code" is not an HTTP status: "1000'),
    (json.dumps(event(responseStatus={"code": "200"})), '"responseStatus.code" is not an HTTP status: "\\"200'),
    (json.dumps(event(responseStatus={"code": 0})).replace("0}", f"{'1' * 5000}}}"), '"responseStatus.code" is not an'),
    (f"{json.dumps(event())}\x00\x00", "this is not JSON: Extra data"),
    ("\x0c\x85", "this is not JSON"),
    ("2026-11-22T05:49:20.000Z {}", "the event has no stage"),
    (json.dumps(event(requestReceivedTimestamp=None, stageTimestamp=None)), "the event has no time"),
    ('{"category":"kube-audit","properties":{"log":"I1122"}}', '"properties.log" of this log record is not'),
    ('{"kind":"Event","stage":"\\ud800"}', "this is not UTF-8"),
    ('{"a":' * 100_000, "this JSON is nested too deeply"),
]
"""Lines without a valid event, each with the start of the reported reason, or None for a line without a value."""
ODD_LINES = [
    "",
    "  \t",
    "not JSON",
    "{",
    "{}",
    "[]",
    "null",
    "5",
    '"x"',
    "'",
    "\x00",
    "\x01",
    "\f",
    "a\rb",
    "I1122 05:49:20.098236       1 controller.go:1] OpenAPI",
    "2026-11-22T05:49:20Z stdout F",
    "2026-11-22T05:49:20Z stdout F {}",
    "2026-11-22T05:49:20Z stdout P {",
    '{"kind":"Pod","apiVersion":"v1"}',
    '{"log":"x"}',
    '{"log":5}',
    '{"log":{}}',
    '{"log":null}',
    '{"message":"x","log":"y"}',
    '{"messageType":"CONTROL_MESSAGE"}',
    '{"properties":{"log":"I1122"},"category":"kube-scheduler"}',
    '{"items":[]}',
    '{"a":"\\ud800"}',
    '{"a":1,}',
    '{"a":nan}',
    "[[[[[[[[[[[[]]]]]]]]]]]]",
    '{"_source":' * 12 + "{}" + "}" * 12,
]
"""Lines that look like wrappers or values of other formats."""
_EVENT = json.dumps(event(auditID="b" * 36))
DAMAGED_EVENTS = [
    _EVENT[:-1],
    _EVENT[1:],
    _EVENT + _EVENT,
    _EVENT + "x",
    "\ufeff" + _EVENT,
    _EVENT + "\r",
    f"{_EVENT[:-1]},}}",
    f'{_EVENT[:-1]},"x":[1,]}}',
    f'{_EVENT[:-1]},"x":[1 ,\t]}}',
    f'{_EVENT[:-1]},"stage":"Panic"}}',
    f'{_EVENT[:-1]},"verb":5}}',
    f'{_EVENT[:-1]},"user":{{}}}}',
    f'{_EVENT[:-1]},"user":5}}',
    f'{_EVENT[:-1]},"user":null}}',
    f'{_EVENT[:-1]},"objectRef":[]}}',
    f'{_EVENT[:-1]},"auditID":"\\ud800"}}',
    f'{_EVENT[:-1]},"auditID":"\\u0000"}}',
    f'{_EVENT[:-1]},"x":"\\x"}}',
    f'{_EVENT[:-1]},"x":"\x01"}}',
    f'{_EVENT[:-1]},"x":"\x00"}}',
    f'{_EVENT[:-1]},"x":1e999}}',
    f'{_EVENT[:-1]},"x":{"1" * 5000}}}',
    f'{_EVENT[:-1]},"x":{"[" * 3000}{"]" * 3000}}}',
    f'{_EVENT[:-1]},"log":"{{}}","message":"x"}}',
    f'{_EVENT[:-1]},"\\u0073tage":"Panic"}}',
    _EVENT.replace("{", "{ ", 1),
    _EVENT.replace('"kind"', '"Kind"'),
    _EVENT.replace("Event", "EventList"),
    _EVENT.replace("audit.k8s.io", "audit.k8s.io\u2028"),
    _EVENT.replace('"list"', '"\\ud83d\\ude00"'),
]
"""Lines with an event that is damaged, or written in an unusual way."""
HOSTILE_LINES = [*(line for line, _ in BAD_LINES), *ODD_LINES, *DAMAGED_EVENTS]
