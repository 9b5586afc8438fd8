"""Path patterns: what they match, and the bound on comparisons."""

from __future__ import annotations

from fnmatch import fnmatchcase
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.settings import patterns
from apflint.settings.patterns import PathMatcher, Patterns
from apflint.user_error import UserError


@given(st.text("ab*?[]!-/\n", min_size=1, max_size=8), st.text("ab[]-/\n", min_size=1, max_size=8))
def test_texts_of_a_pattern_omit_no_match(pattern: str, path: str) -> None:
    if fnmatchcase(path, pattern):
        assert patterns._Glob.parse(pattern).text in path


def test_too_many_comparisons_are_an_error() -> None:
    matcher = PathMatcher(Patterns(("*a*b", "c*d")))
    with patch.object(patterns, "MAX_PATTERN_WORK", 20):
        assert not matcher.matches("a")
        assert not matcher.matches("d" * 30)
        assert not matcher.matches("axxxx")
        with pytest.raises(UserError, match="Comparing all paths with 2 path patterns takes too long"):
            matcher.matches("axxxx")
