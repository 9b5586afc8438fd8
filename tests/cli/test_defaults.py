"""Objects that `apflint defaults` prints, by release and API version."""

from __future__ import annotations

import pytest

from apflint.cli.app import run
from apflint.releases import NEWEST


def test_default_is_the_newest_release(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for arguments in ([], ["--kubernetes", NEWEST.name, "--api-version", "flowcontrol.apiserver.k8s.io/v1"]):
        assert run(["defaults", *arguments]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "kind: FlowSchema" in printed[0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--kubernetes", "1.18", "--api-version", "v1"],
            "Kubernetes 1.18 has no flowcontrol.apiserver.k8s.io/v1, which 1.29 introduces. Its newest version is v1alpha1",
        ),
        (["--api-version", "v2"], 'unknown API version "v2": use v1, v1beta3, v1beta2, v1beta1 or v1alpha1.'),
        (["--kubernetes", "1.99"], '"1.99" is too new'),
    ],
)
def test_version_that_a_release_does_not_have(
    capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    assert run(["defaults", *arguments]) == 2
    assert error in capsys.readouterr().err
