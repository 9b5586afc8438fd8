"""Hashes of lines, compared with the test data of codeql-action and with a second implementation."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apflint.output.findings.line_hashes import hash_lines
from output.findings.reports import LAWS, TEXT

# Hash of the end of a file. This and the other expected hashes are from codeql-action's tests of the same texts.
END = "c129715d7a2bc9a3:1"
GREETINGS = [
    "e9496ae3ebfced30:1",
    "fb7c023a8b9ccb3f:1",
    "ce8ba1a563dcdaca:1",
    "e20e36e16fcb0cc8:1",
    "b3edc88f2938467e:1",
    "c8e28b0b4002a3a0:1",
    END,
]
LOREM = [f"a7f2ff13bc495cf2:{n}" for n in range(1, 7)]


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", [END]),
        (
            " a\nb\n  \t\tc\n d",
            ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"],
        ),
        (" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n", GREETINGS),
        (" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r", GREETINGS),
        (" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n", GREETINGS),
        (
            "Lorem ipsum dolor sit amet.\n" * 10,
            [
                *LOREM,
                "a7f2ff1481e87703:1",
                "a9cf91f7bbf1862b:1",
                "55ec222b86bcae53:1",
                "cc97dc7b1d7d8f7b:1",
                END,
            ],
        ),
    ],
)
def test_hash_lines(text: str, hashes: list[str]) -> None:
    assert list(hash_lines(text, range(1, 20)).values()) == hashes
    assert hash_lines(text, {2}) == dict(list(enumerate(hashes, 1))[1:2])


def rolling(text: str) -> dict[int, str]:
    """Compute the hashes with a window that moves over the text unit by unit."""
    data = re.sub("\r\n?", "\n", text).encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
    units = [unit for unit in units if unit not in (9, 32)] + [65535]
    starts = {0} | {i + 1 for i, unit in enumerate(units) if unit == 10}
    padded = [0] * 100 + units + [0] * 100
    value, seen = 0, Counter[int]()
    found: dict[int, str] = {}
    for end in range(100, len(padded)):
        value = (value * 37 + padded[end] - 37**100 * padded[end - 100]) % 2**64
        if end - 199 in starts:
            seen[value] += 1
            found[len(found) + 1] = f"{value:x}:{seen[value]}"
    return found


@given(st.text(st.sampled_from("ab \t\r\n\U0001f600é"), max_size=400) | TEXT)
@example("a \U0001f600\ud800\n\udfff")
@LAWS
def test_line_hashes_equal_a_rolling_hash(text: str) -> None:
    assert hash_lines(text, range(1, 500)) == rolling(text)
