"""What a finding about a wrong type says of the value as it is written."""

from __future__ import annotations

import pytest

from apflint.engine import check
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


def _said(written: str) -> list[str]:
    return [found.message for found in check([("a.yaml", FLOW.replace("HERE", written).encode())]).findings]


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("y", '["y"]'),  # a boolean to YAML
        ("&x no", '["no"]'),
        ("5", '["5"]'),
        ("team", "[team]"),
        ('"team"', '["team"]'),
        ("'y, team'", '["y", team]'),
        ("'team, *'", '[team, "*"]'),
    ],
)
def test_a_list_that_a_message_advises_is_one_of_texts(written: str, advice: str) -> None:
    [message] = _said(written)
    assert message.endswith(f": {advice}")
    assert not any("expected" in other for other in _said(advice))


@pytest.mark.parametrize(
    ("name", "quoted"), [("yes", '"yes"'), ("&x 2.10", '"2.10"'), ("no", '"no"'), ("0", '"0"'), ("", '"..."')]
)
def test_a_name_beside_its_kind_is_advised_as_it_is_written(name: str, quoted: str) -> None:
    text = FLOW.replace("HERE", "[team]").replace("group: {name: g}", f"name: {name}")
    [message] = [found.message for found in check([("a.yaml", text.encode())]).findings if found.rule == "APF101"]
    assert message.endswith(f"`kind: Group` with `group: {{name: {quoted}}}`")


@pytest.mark.parametrize(
    ("there", "key", "value", "advice"),
    [
        ("metadata: {name: a}", "metadata", "name:a", ". Is a space missing after the colon?"),
        ("metadata: {name: a}", "metadata", "my name:a", ""),
        ("metadata: {name: a}", "metadata", "a", ""),
        ("group: {name: g}", "group", "name:g", ". Is a space missing after the colon?"),
        ("group: {name: g}", "group", "sso:g", ". Write {name: sso:g}"),
    ],
)
def test_a_text_where_a_mapping_is_due(there: str, key: str, value: str, advice: str) -> None:
    text = FLOW.replace("HERE", "[team]").replace(there, f"{key}: {value}")
    [message] = [found.message for found in check([("a.yaml", text.encode())]).findings if found.rule == "APF102"]
    assert message == f'expected a mapping for "{key}", got the string "{value}"{advice}'


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("2.10", 'YAML parses 2.10 as the number 2.1. Quote it: "2.10"'),
        ("1" * 40, f'YAML parses {"1" * 40} as the number {float("1" * 40)}. Quote it: "{"1" * 40}"'),
        # What is too long to show is not shown as what it was read as: that is another text.
        ("1" * 41, "YAML parses it as the number 1.111111111111111e+40. Quote it"),
    ],
)
def test_a_text_that_was_read_as_a_number_is_advised_as_it_is_written(name: str, said: str) -> None:
    text = FLOW.replace("HERE", "[team]").replace("metadata: {name: a}", f"metadata: {{name: {name}}}")
    [message] = [found.message for found in check([("a.yaml", text.encode())]).findings if found.rule == "APF102"]
    assert message == f'expected a string for "name", but {said}'


@pytest.mark.parametrize(
    ("text", "written", "advice"),
    [
        ("5", '"5"', "remove the quotes: 5"),
        ("-5", "'-5'", "remove the quotes: -5"),
        ("five", '"five"', ""),
        ("0500", '"0500"', ""),  # YAML reads 320 in it
        ("99999999999", '"99999999999"', ""),  # more than the field takes
        ("\uff15", '"\uff15"', ""),  # a digit to Python, and a text to YAML
        ("5", "!!str 5", ""),
        ("9" * 400, "", ""),  # a number too large to be one has no quotes; what is too long to show is given as ""
    ],
)
def test_quotes_are_only_to_be_left_out_where_they_are(text: str, written: str, advice: str) -> None:
    assert _advise_removing_quotes(text, "int32", written) == advice
