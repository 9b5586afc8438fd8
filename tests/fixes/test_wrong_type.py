"""APF102: the help that shows how to write a value of the right type."""

from __future__ import annotations

import pytest
from support.builders import findings_in_text

FLOW = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: a}
spec:
  matchingPrecedence: 8100
  priorityLevelConfiguration: {name: workload-low}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects:
    - {kind: Group, group: {name: g}}
    resourceRules:
    - {verbs: [get], apiGroups: [""], resources: [pods], namespaces: HERE}
"""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("y", '["y"]'),  # a boolean in YAML
        ("&x no", '["no"]'),
        ("5", '["5"]'),
        ("team", '["team"]'),
        ('"team"', '["team"]'),
        ("'y, team'", '["y", "team"]'),
        ("'team, *'", '["team", "*"]'),
    ],
)
def test_list_in_help_has_strings_as_items(written: str, shown: str) -> None:
    (finding,) = findings_in_text(FLOW.replace("HERE", written))
    assert finding.help == f"write a list: {shown}"
    assert not findings_in_text(FLOW.replace("HERE", shown), only="APF102")


@pytest.mark.parametrize(
    ("original", "key", "value", "help_text"),
    [
        ("metadata: {name: a}", "metadata", "name:a", "is a space missing after the colon?"),
        ("metadata: {name: a}", "metadata", "my name:a", None),
        ("metadata: {name: a}", "metadata", "a", None),
        ("group: {name: g}", "group", "name:g", "is a space missing after the colon?"),
        ("group: {name: g}", "group", "sso:g", 'write {name: "sso:g"}'),
    ],
)
def test_help_for_a_string_in_place_of_a_mapping(original: str, key: str, value: str, help_text: str | None) -> None:
    text = FLOW.replace("HERE", "[team]").replace(original, f"{key}: {value}")
    (finding,) = findings_in_text(text, only="APF102")
    assert finding.message == f'expected a mapping for "{key}", got the string "{value}"'
    assert finding.help == help_text


@pytest.mark.parametrize(
    ("name", "shown", "number", "help_text"),
    [
        ("2.10", "`2.10`", "2.1", 'quote it: "2.10"'),
        ("1" * 40, f"`{'1' * 40}`", str(float("1" * 40)), f'quote it: "{"1" * 40}"'),
        ("1" * 41, "it", "1.111111111111111e+40", f'quote it: "{"1" * 41}"'),  # too long for a message
    ],
)
def test_string_that_yaml_parses_as_a_number_is_shown_as_written(
    name: str, shown: str, number: str, help_text: str
) -> None:
    text = FLOW.replace("HERE", "[team]").replace("metadata: {name: a}", f"metadata: {{name: {name}}}")
    (finding,) = findings_in_text(text, only="APF102")
    assert finding.message == f'expected a string for "name", but YAML parses {shown} as the number {number}'
    assert finding.help == help_text


@pytest.mark.parametrize(
    ("written", "help_text"),
    [
        ('"5"', "remove the quotes: 5"),
        ("'-5'", "remove the quotes: -5"),
        ('"five"', None),
        ('"0500"', None),  # without quotes, YAML parses 0500 as the octal form of 320
        ('"99999999999"', None),  # exceeds the range
        ('"\uff15"', None),  # a digit for Python, a string for YAML
        ("!!str 5", None),
        (f"'{'9' * 400}'", None),
    ],
)
def test_quotes_of_an_integer_are_removed(written: str, help_text: str | None) -> None:
    text = FLOW.replace("HERE", "[team]").replace("8100", written)
    (finding,) = findings_in_text(text, only="APF102")
    assert finding.help == help_text
