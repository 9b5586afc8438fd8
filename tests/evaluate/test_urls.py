"""Long lists of `nonResourceURLs` are looked up as the server compares them one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate.match import match_policy_rule_non_resource_url
from apflint.evaluate.urls import UrlSet, covers_urls

PATHS = st.text(alphabet="/a*", max_size=6) | st.sampled_from(["/healthz", "/healthz/", "/healthz/*", "/healthz*", "*"])


@given(urls=st.lists(PATHS, max_size=6), path=PATHS)
def test_a_set_of_urls_takes_what_the_server_takes(urls: list[str], path: str) -> None:
    assert (path in UrlSet(urls)) == match_policy_rule_non_resource_url(urls, path)


@given(urls=st.lists(PATHS, min_size=1, max_size=6), others=st.lists(PATHS, min_size=1, max_size=6))
def test_long_lists_cover_as_short_ones_do(urls: list[str], others: list[str]) -> None:
    assert covers_urls(others * 30, urls * 30) == covers_urls(others, urls)
