"""A set of `nonResourceURLs` contains the paths that the server matches with one URL after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate.match import match_policy_rule_non_resource_url
from apflint.evaluate.url_set import UrlSet, includes_urls

PATHS = st.text(alphabet="/a*", max_size=6) | st.sampled_from(["/healthz", "/healthz/", "/healthz/*", "/healthz*", "*"])


@given(urls=st.lists(PATHS, max_size=6), path=PATHS)
def test_set_contains_the_paths_that_the_server_matches(urls: list[str], path: str) -> None:
    assert (path in UrlSet(urls)) == match_policy_rule_non_resource_url(urls, path)


def test_url_includes_the_paths_below_it() -> None:
    assert includes_urls(["/healthz", "/version/"], ["/healthz/etcd", "/version/*"])
    assert not includes_urls(["/healthz/"], ["/healthz"])
