"""The facts about releases equal the recorded behavior of servers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.releases import API_VERSIONS, NEWEST, RELEASES, Release, _make_release, api_version, parse_release
from apflint.user_error import UserError

SERVED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "fixtures/oracle/releases/served.json").read_text(encoding="utf-8")
)
KNOWN = f"Kubernetes 1.18 to {NEWEST.name}"
WARNING = re.compile(r"\S+/(\S+) \w+ is deprecated in v(\S+)\+, unavailable in v(\S+)\+; use \S+/(\S+) \w+")


@pytest.mark.parametrize("name", SERVED)
def test_versions_served_by_default_are_the_recorded_ones(name: str) -> None:
    recorded = SERVED[name]
    assert list(parse_release(name).served) == recorded["default"]
    assert parse_release(name).newest_version == recorded["preferred"]


@pytest.mark.parametrize("name", SERVED)
def test_deprecations_are_the_recorded_warnings(name: str) -> None:
    target = parse_release(name)
    warned = set()
    for version, texts in SERVED[name]["warnings"].items():
        for text in texts.values():
            found = WARNING.fullmatch(text)
            assert found is not None
            assert found[1] == version
            mine = target.deprecated(version)
            assert mine is not None
            assert (mine.since, mine.removed_in) == (found[2], found[3])
            # Servers of 1.29 serve v1beta2 only with a flag, and their warning about v1beta2 recommends
            # v1beta3. apflint recommends v1, because v1beta3 is also deprecated.
            assert mine.replacement == ("v1" if (name, version) == ("1.29", "v1beta2") else found[4])
        warned.add(version)
    assert {version for version in target.served if target.deprecated(version)} == warned & set(target.served)


def test_served_by_default_in_every_release() -> None:
    first_and_last = {
        version: (names[0], names[-1])
        for version in ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1")
        if (names := [r.name for r in RELEASES if version in r.served])
    }
    assert first_and_last == {
        "v1beta1": ("1.20", "1.25"),
        "v1beta2": ("1.23", "1.28"),
        "v1beta3": ("1.26", "1.31"),
        "v1": ("1.29", NEWEST.name),
    }
    assert [r.name for r in RELEASES if r.on_request] == ["1.18", "1.19", "1.20"]
    assert {version for r in RELEASES for version in r.on_request} == {"v1alpha1"}
    assert parse_release("1.19").newest_version == "v1alpha1"
    assert parse_release("1.20").newest_version == "v1beta1"


def test_releases_are_in_order() -> None:
    assert [r.name for r in RELEASES] == [f"1.{minor}" for minor in range(18, 18 + len(RELEASES))]
    assert NEWEST is RELEASES[-1]


@pytest.mark.parametrize(
    ("fact", "since"),
    [
        ("refuses_invalid_timeouts", "1.21"),
        ("classifies_watches", "1.22"),
        ("maintains_objects", "1.22"),
        ("estimates_seats", "1.23"),
        ("bounds_seats_by_level", "1.25"),
        ("strict_decoding", "1.25"),
        ("has_borrowing", "1.26"),
        ("has_exempt_field", "1.28"),
        ("limits_wait_by_deadline", "1.28"),
        ("allows_zero_shares", "1.30"),
    ],
)
def test_features_begin_with_a_release(fact: str, since: str) -> None:
    assert next(r.name for r in RELEASES if getattr(r, fact)) == since
    assert [getattr(r, fact) for r in RELEASES] == sorted(getattr(r, fact) for r in RELEASES), (
        "it never went away again"
    )


def test_maximum_seats_of_a_request() -> None:
    # Sources: config.go, mutating_work_estimator.go and kube_features.go of k8s.io/apiserver, by tag.
    lists = {r.minor: r.max_list_seats for r in RELEASES}
    assert lists == {minor: 1 if minor < 23 else 10 if minor < 34 else 100 for minor in lists}
    assert [r.minor for r in RELEASES if r.max_mutating_seats == 1] == list(range(18, 24))
    assert {r.max_mutating_seats for r in RELEASES if r.minor > 23} == {10}
    assert [r.minor for r in RELEASES if r.estimates_watches] == [32, *range(34, NEWEST.minor + 1)]


# Recorded verdicts of servers about objects with 0 shares, as tuples: release, API version, whether the object has the
# annotation, and whether the server keeps the 0.
ZERO = [
    ("1.21", "v1beta1", True, False),
    ("1.28", "v1beta3", True, False),
    ("1.29", "v1beta2", True, False),
    ("1.29", "v1beta3", False, False),
    ("1.29", "v1beta3", True, True),
    ("1.29", "v1", False, True),
    ("1.31", "v1beta3", False, False),
    ("1.31", "v1beta3", True, True),
    ("1.36", "v1", False, True),
]


@pytest.mark.parametrize(("name", "version", "annotated", "kept"), ZERO)
def test_zero_shares_are_kept_or_defaulted(name: str, version: str, annotated: bool, kept: bool) -> None:
    assert parse_release(name).keeps_zero_shares(version, annotated=annotated) is kept


def test_annotation_is_rejected_outside_v1beta3() -> None:
    refused = {
        (name, version)
        for name in ("1.21", "1.28", "1.29", "1.31", "1.36")
        for version in ("v1beta1", "v1beta2", "v1beta3", "v1")
        if parse_release(name).forbids_preserve_zero_annotation(version)
    }
    assert refused == {(name, version) for name in ("1.29", "1.31", "1.36") for version in ("v1beta1", "v1beta2", "v1")}


@pytest.mark.parametrize("text", ["1.31", "v1.31", "1.31.2", "v1.31.14", "v1.31.2-gke.1200", "1.31.1+k3s1", " 1.31 "])
def test_release_is_parsed(text: str) -> None:
    assert parse_release(text) is RELEASES[13]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.17", f'is too old: apflint knows {KNOWN}. The nearest release is "1.18"'),
        (f"1.{NEWEST.minor + 1}", f'is too new: apflint knows {KNOWN}. The nearest release is "{NEWEST.name}"'),
        ("1.3", 'Did you mean "1.30"?'),
        ("latest", f'is not a Kubernetes release. Write it like "{NEWEST.name}"'),
        ("", "is not a Kubernetes release"),
        ("1", "is not a Kubernetes release"),
        ("2.1", "is not a Kubernetes release"),
        ("1.31.", "is not a Kubernetes release"),
        ("1.٣١", "is not a Kubernetes release"),
    ],
)
def test_unknown_release_is_rejected(text: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        parse_release(text)


@settings(max_examples=100, derandomize=True)
@given(st.text(max_size=12) | st.from_regex(r"v?1\.[0-9]{1,4}(\.[0-9]+)?", fullmatch=True))
def test_any_string_is_a_release_or_rejected(text: str) -> None:
    try:
        found = parse_release(text)
    except UserError as error:
        found, message = None, str(error)
    else:
        message = ""
    assert f".{found.minor}" in text if found else KNOWN in message


@pytest.mark.parametrize("target", RELEASES, ids=lambda r: r.name)
def test_laws_of_releases(target: Release) -> None:
    order = [life.name for life in API_VERSIONS]
    assert list(target.served) == sorted(target.served, key=order.index), "the newest first"
    assert not set(target.served) & set(target.on_request)
    for name in order:
        if deprecation := target.deprecated(name):
            assert deprecation.replacement in target.served
            assert target.deprecated(deprecation.replacement) is None
            removed = parse_release(deprecation.removed_in).minor
            assert (target.minor < removed) == (name in target.served + target.on_request)


def test_unknown_api_version() -> None:
    assert api_version("v2") is None
    assert NEWEST.deprecated("v2") is None


@pytest.mark.parametrize(
    ("minor", "served", "on_request"),
    [
        (18, (), ("v1alpha1",)),
        (20, ("v1beta1",), ("v1alpha1",)),
        (22, ("v1beta1",), ()),
        (23, ("v1beta2", "v1beta1"), ()),
        (26, ("v1beta3", "v1beta2"), ()),
        (29, ("v1", "v1beta3"), ()),
        (31, ("v1", "v1beta3"), ()),
        (32, ("v1",), ()),
    ],
)
def test_release_follows_from_the_lives_of_api_versions(
    minor: int, served: tuple[str, ...], on_request: tuple[str, ...]
) -> None:
    created = _make_release(minor)
    assert (created.minor, created.name, created.served, created.on_request) == (
        minor,
        f"1.{minor}",
        served,
        on_request,
    )
