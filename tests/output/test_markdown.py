"""Markdown: only values and commands in messages are code spans."""

from __future__ import annotations

import pytest

from apflint.output.markdown import format_prose


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Lower handSize to 8, or raise queues.", "Lower handSize to 8, or raise queues."),
        ('the level "batch jobs": it has no queues', 'the level `"batch jobs"`: it has no queues'),
        ("set `clusterScope: true` (`apflint fix`).", "set `clusterScope: true` (`apflint fix`)."),
        ("spec.rules[0].subjects comes first", "`spec.rules[0].subjects` comes first"),
        ("verbs * and a_b_c", "verbs `*` and `a_b_c`"),
        ("see www.example.com and https://example.com", "see `www.example.com` and `https://example.com`"),
        ("@team #1 GH-12 <b> &amp; [x](y) ~~no~~", "`@team` `#1` `GH-12` `<b>` `&amp;` `[x](y)` `~~no~~`"),
        ("commit 0123abc in a|b", "commit `0123abc` in `a\\|b`"),
        ("one ` alone", "one `` ` `` alone"),
        ("two  spaces", "`two  spaces`"),
        ("", '""'),
    ],
)
def test_prose(message: str, shown: str) -> None:
    assert format_prose(message) == shown
