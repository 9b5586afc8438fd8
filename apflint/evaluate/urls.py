"""Looks up paths in long lists of `nonResourceURLs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL, match_policy_rule_non_resource_url

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONG = 32
"""From this length on it pays to make sets of a list, which is matched against many paths."""
_MAX_KNOWN = 256


class UrlSet:
    """A list of `nonResourceURLs` that answers as `match_policy_rule_non_resource_url` does, without a look at each URL."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = frozenset(urls)
        self._takes_all = ALL in self._urls
        folders = (url.removesuffix(ALL) for url in self._urls)
        self._folders = frozenset(folder if folder.endswith("/") else f"{folder}/" for folder in folders)
        # A path may have thousands of slashes: only those are of interest where a folder of the list can end.
        self._lengths = sorted(set(map(len, self._folders)))

    def __contains__(self, path: str) -> bool:
        if self._takes_all or path in self._urls:
            return True
        folders, size = self._folders, len(path)
        for length in self._lengths:
            if length > size:
                return False
            if path[length - 1] == "/" and path[:length] in folders:
                return True
        return False


_known: dict[int, tuple[Sequence[str], UrlSet]] = {}
"""The sets of long lists by the identity of the list, which is kept so that no other one gets its identity."""


def matches_urls(urls: Sequence[str], path: str) -> bool:
    """Return what `match_policy_rule_non_resource_url` does. The list must never change."""
    if len(urls) < _LONG:
        return match_policy_rule_non_resource_url(urls, path)
    entry = _known.get(id(urls))
    if entry is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        entry = _known[id(urls)] = urls, UrlSet(urls)
    return path in entry[1]


def covers_urls(others: Sequence[str], urls: Sequence[str]) -> bool:
    """Whether a list of URLs covers each URL of another: the path itself, and so all below it."""
    return all(matches_urls(others, url) for url in urls)
