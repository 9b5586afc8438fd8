"""A list of `nonResourceURLs` in which a path is found without trying each URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable


class UrlSet:
    """URLs of a non-resource rule. `path in urls` is `match_policy_rule_non_resource_url(urls, path)`."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._urls = frozenset(urls)
        self._prefixes = frozenset(map(path_prefix, self._urls))
        # A path may have thousands of slashes; only those at the length of a prefix matter.
        self._lengths = sorted(set(map(len, self._prefixes)))

    def __contains__(self, path: str) -> bool:
        if ALL in self._urls or path in self._urls:
            return True
        return any(
            length <= len(path) and path[length - 1] == "/" and path[:length] in self._prefixes
            for length in self._lengths
        )


def path_prefix(url: str) -> str:
    """Return the prefix of the paths that a URL matches besides itself (`match_policy_rule_non_resource_url`)."""
    prefix = url.removesuffix(ALL)
    return prefix if prefix.endswith("/") else f"{prefix}/"


def includes_urls(urls: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether every path that `others` match is also matched by `urls`."""
    known = UrlSet(urls)
    return all(url in known for url in others)
