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


@pytest.mark.parametrize(
    ("version", "kubernetes", "help_text"),
    [
        ("v1beta1", "1.23", f"use {GROUP}/v1beta2 for Kubernetes 1.23 to 1.28: apflint migrate --to v1beta2"),
        ("v1beta3", "1.31", f"use {GROUP}/v1 for Kubernetes 1.29 and later: apflint migrate --to v1"),
    ],
)
def test_help_for_a_deprecated_version_names_the_releases(version: str, kubernetes: str, help_text: str) -> None:
    """A file can be in clusters of several releases, for which the advice differs."""
    (finding,) = findings(flow_schema("x", version=version), only="APF702", kubernetes=kubernetes)
    assert finding.help == help_text


@pytest.mark.parametrize(("kubernetes", "has_zero"), [("1.28", False), ("1.29", False), ("1.30", True), ("1.31", True)])
def test_zero_shares_with_v1_are_suggested_if_the_release_has_them(kubernetes: str, has_zero: bool) -> None:
    (finding,) = findings(priority_level("x", 0, version="v1beta3"), only="APF704", kubernetes=kubernetes)
    assert str(finding.help).endswith(", or use v1 for 0 shares") is has_zero
