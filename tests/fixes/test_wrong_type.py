"""APF102: help that shows how to write a value."""

from __future__ import annotations

import pytest
from support.builders import findings_in_text

from apflint.fixes.wrong_type import _advise_removing_quotes

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
        ("team", "[team]"),
        ('"team"', '["team"]'),
        ("'y, team'", '["y", team]'),
        ("'team, *'", '[team, "*"]'),
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
        ("group: {name: g}", "group", "sso:g", "write {name: sso:g}"),
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
        ("2.10", "2.10", "2.1", 'quote it: "2.10"'),
        ("1" * 40, "1" * 40, str(float("1" * 40)), f'quote it: "{"1" * 40}"'),
        ("1" * 41, "it", "1.111111111111111e+40", "quote it"),  # too long to show
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
    ("text", "written", "help_text"),
    [
        ("5", '"5"', "remove the quotes: 5"),
        ("-5", "'-5'", "remove the quotes: -5"),
        ("five", '"five"', None),
        ("0500", '"0500"', None),  # YAML parses it as 320
        ("99999999999", '"99999999999"', None),  # does not fit into the field
        ("\uff15", '"\uff15"', None),  # a digit for Python, a string for YAML
        ("5", "!!str 5", None),
        ("9" * 400, "", None),  # too long to show
    ],
)
def test_help_removes_only_quotes_that_are_present(text: str, written: str, help_text: str | None) -> None:
    assert _advise_removing_quotes(text, "int32", written) == help_text
