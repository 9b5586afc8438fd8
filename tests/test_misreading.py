"""What a finding about a wrong type says of the value as it is written."""

from __future__ import annotations

import pytest

from apflint.checks.misreading import _without_quotes


@pytest.mark.parametrize(
    ("text", "written", "advice"),
    [
        ("5", '"5"', ". Write it without quotes: 5"),
        ("-5", "'-5'", ". Write it without quotes: -5"),
        ("five", '"five"', ""),
        ("0500", '"0500"', ""),  # YAML reads 320 in it
        ("99999999999", '"99999999999"', ""),  # more than the field takes
        ("\uff15", '"\uff15"', ""),  # a digit to Python, and a text to YAML
        ("5", "!!str 5", ""),
        ("9" * 400, "", ""),  # a number too large to be one has no quotes; what is too long to show is given as ""
    ],
)
def test_quotes_are_only_to_be_left_out_where_they_are(text: str, written: str, advice: str) -> None:
    assert _without_quotes(text, "int32", written) == advice
