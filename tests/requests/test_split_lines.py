"""Lines that a container runtime has split at any character are joined."""

from __future__ import annotations

import json

import pytest

from apflint.requests.split_lines import SplitLines, is_part

EVENT = (
    r'{"kind":"Event","requestURI":"/api/v1/pods?a=1\u0026b=\"x\\\\y\"","user":{"groups":["a","\u00e9"]},'
    r'"requestObject":{"a":true,"b":false,"c":null,"d":[-1.5e-3,12,2E+7,0.25]},"code":429}'
)


def wrap(part: str) -> str:
    return json.dumps({"log": part, "stream": "stdout"})


@pytest.mark.parametrize("at", range(1, len(EVENT)))
def test_event_that_is_split_at_any_character_is_joined(at: int) -> None:
    assert is_part(wrap(EVENT[:at]))
    lines = SplitLines()
    records = [
        record for part in (EVENT[:at], f"{EVENT[at:]}\n") for record in lines.join_record(json.loads(wrap(part)))
    ]
    assert records == [{"log": f"{EVENT}\n", "stream": "stdout"}]
    assert lines.is_empty


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[",
        EVENT,
        EVENT + "}",
        '{"a":x',
        '{"a":1 "',
        '{"a" "',
        '{"a":"\\x',
        '{"a":"x"e',
        '{"a":.',
        "{tr",
        '{"a":"\n',
    ],
)
def test_text_that_is_no_beginning_of_an_object_is_no_part(text: str) -> None:
    assert not is_part(wrap(text))
