"""APF201, APF204: the spec of a FlowSchema."""

from __future__ import annotations

import pytest
from support.builders import findings, flow_schema, priority_level


@pytest.mark.parametrize(
    ("precedence", "is_rejected"),
    [(0, False), (1, False), (10000, False), (10001, True), (-1, True), (2**31 - 1, True)],
)
def test_precedence_is_between_1_and_10000(precedence: int, is_rejected: bool) -> None:
    found = findings(flow_schema("x", precedence=precedence), only="APF201")
    assert [finding.help for finding in found] == ["set matchingPrecedence to a value from 2 to 10000"] * is_rejected


@pytest.mark.parametrize(
    ("name", "help_text", "has_fix"),
    [
        ("Workload_Low", 'did you mean "workload-low"?', True),
        (" MINE ", 'did you mean "mine"?', True),
        ("Unknown", None, False),
        ("${LEVEL}", 'is "${LEVEL}" a placeholder? render the template before checking it', False),
    ],
)
def test_help_for_an_invalid_priority_level_name(name: str, help_text: str | None, has_fix: bool) -> None:
    (finding,) = findings(priority_level("mine"), flow_schema("x", name), only="APF204")
    assert finding.help == help_text
    assert (finding.fix is not None) is has_fix
