"""APF701, APF704: API versions."""

from __future__ import annotations

import pytest
from support.builders import findings, flow_schema, priority_level

GROUP = "flowcontrol.apiserver.k8s.io"


@pytest.mark.parametrize(
    ("version", "kubernetes", "message", "help_text"),
    [
        ("", "1.36", f'apiVersion has no version after "{GROUP}"', f"use {GROUP}/v1 for Kubernetes 1.36"),
        ("v9", "1.36", f'unknown version "v9" of {GROUP}', f"use {GROUP}/v1 for Kubernetes 1.36"),
        (
            "v1alpha1",
            "1.36",
            "Kubernetes 1.36 does not serve v1alpha1: it was removed in 1.21",
            f"use {GROUP}/v1 for Kubernetes 1.36: apflint migrate --to v1",
        ),
        (
            "v1beta2",
            "1.36",
            "Kubernetes 1.36 does not serve v1beta2: it was removed in 1.29",
            f"use {GROUP}/v1 for Kubernetes 1.36: apflint migrate --to v1",
        ),
        (
            "v1",
            "1.28",
            "Kubernetes 1.28 does not serve v1: it was added in 1.29",
            f"use {GROUP}/v1beta3 or {GROUP}/v1beta2 for Kubernetes 1.28",
        ),
        (
            "v1alpha1",
            "1.20",
            "Kubernetes 1.20 serves v1alpha1 only with --runtime-config",
            f"use {GROUP}/v1beta1 for Kubernetes 1.20: apflint migrate --to v1beta1",
        ),
    ],
)
def test_version_that_is_not_served(version: str, kubernetes: str, message: str, help_text: str) -> None:
    (finding,) = findings(flow_schema("x", version=version), only="APF701", kubernetes=kubernetes)
    assert finding.message == message
    assert finding.help == help_text
    assert (finding.severity, finding.notes) == ("error", ("kubectl apply fails.",))


@pytest.mark.parametrize("kubernetes", ["1.18", "1.19"])
def test_version_that_is_the_only_one_is_an_info_for_the_first_object(kubernetes: str) -> None:
    """Only v1alpha1 exists in these releases, so users must have enabled it. Any other version is an error for each object."""
    names = ("a", "b")
    only = [flow_schema(name, version="v1alpha1") for name in names]
    (finding,) = findings(*only, only="APF701", kubernetes=kubernetes)
    assert (finding.severity, finding.notes) == ("info", ())
    assert finding.help == f"start kube-apiserver with --runtime-config={GROUP}/v1alpha1=true, or remove the file"
    others = findings(*only, *(flow_schema(name, version="v1") for name in "cd"), only="APF701", kubernetes=kubernetes)
    assert [(other.severity, other.notes) for other in others] == [
        ("info", ()),
        *[("error", ("kubectl apply fails.",))] * 2,
    ]


@pytest.mark.parametrize(
    ("version", "kubernetes", "help_text"),
    [
        ("v1beta1", "1.23", f"use {GROUP}/v1beta2 for Kubernetes 1.23 to 1.28: apflint migrate --to v1beta2"),
        ("v1beta3", "1.31", f"use {GROUP}/v1 for Kubernetes 1.29 and later: apflint migrate --to v1"),
    ],
)
def test_help_for_a_deprecated_version_names_the_releases(version: str, kubernetes: str, help_text: str) -> None:
    """A file can belong to clusters of several releases, which need different advice."""
    (finding,) = findings(flow_schema("x", version=version), only="APF702", kubernetes=kubernetes)
    assert finding.help == help_text


@pytest.mark.parametrize(("kubernetes", "has_zero"), [("1.28", False), ("1.29", False), ("1.30", True), ("1.31", True)])
def test_zero_shares_with_v1_are_suggested_if_the_release_has_them(kubernetes: str, has_zero: bool) -> None:
    (finding,) = findings(priority_level("x", 0, version="v1beta3"), only="APF704", kubernetes=kubernetes)
    assert str(finding.help).endswith(", or use v1 for 0 shares") is has_zero


@pytest.mark.parametrize("kubernetes", ["1.26", "1.29", "1.31"])
@pytest.mark.parametrize(
    ("shares", "version"), [(30, "v1beta3"), (1, "v1beta3"), (30, "v1"), (0, "v1"), (None, "v1beta3"), (None, "v1")]
)
def test_shares_with_one_meaning_in_all_versions_are_not_reported(
    shares: int | None, version: str, kubernetes: str
) -> None:
    level = priority_level("x", version=version)
    level["spec"]["limited"]["nominalConcurrencyShares"] = shares
    assert not findings(level, only="APF704", kubernetes=kubernetes)


def test_zero_shares_are_reported_under_the_name_of_their_version() -> None:
    level = priority_level("x", version="v1beta2")
    level["spec"]["limited"]["assuredConcurrencyShares"] = 0
    del level["spec"]["limited"]["nominalConcurrencyShares"]
    (finding,) = findings(level, only="APF704", kubernetes="1.28")
    assert finding.field == "spec.limited.assuredConcurrencyShares"
    assert finding.message == "assuredConcurrencyShares 0 means 30 shares in v1beta2, but 0 shares in v1"
    assert finding.help == "set assuredConcurrencyShares to 30"
