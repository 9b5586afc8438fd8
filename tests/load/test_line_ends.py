"""Findings have the same lines and columns with every kind of line end."""

from __future__ import annotations

import pytest
from support.rule_examples import parse_examples

from apflint import rule_catalogue
from apflint.checks import CHECKS
from apflint.engine import Options, check

ITEMS = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: x
spec:
  rules:
  -
    - a
    - b
  - {subjects: [],
     resourceRules: []}
  - subjects:
    - - a
      - b
    - {kind: User,
       user: {name: u}}
    - {kind: User,
       user: {name: u}}
    nonResourceRules:
    - verbs:
      - [get,
         list]
      nonResourceURLs: "/a
        b"
"""


def places(text: str) -> list[tuple[object, ...]]:
    report = check([("a.yaml", text.encode())], Options(rules=tuple(CHECKS)))
    return [(finding.rule, finding.span, finding.field) for finding in report.findings]


def texts() -> list[str]:
    examples = [example.text for rule in rule_catalogue.read_rules() for example in parse_examples(rule)]
    return [ITEMS, *dict.fromkeys(text for text in examples if "\r" not in text)]


@pytest.mark.slow
def test_positions_do_not_depend_on_line_ends() -> None:
    compared = 0
    for text in texts():
        expected = places(text)
        compared += len(expected)
        assert places(text.replace("\n", "\r\n")) == expected, text
    assert compared > 100


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_positions_of_items_do_not_depend_on_line_ends(end: str) -> None:
    expected = places(ITEMS)
    assert len(expected) > 2
    assert places(ITEMS.replace("\n", end)) == expected
