"""Copies of the built-in objects of a release have no findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders import COMPLETE, OPEN, findings, flow_schema

from apflint import builtin
from apflint.releases import RELEASES, Release, parse_release

if TYPE_CHECKING:
    from apflint.effective import Assumptions


def _of_every_release() -> list[Any]:
    return [pytest.param(one, id=one.name) for one in RELEASES]


@pytest.mark.parametrize("target", _of_every_release())
@pytest.mark.parametrize("assumptions", [OPEN, COMPLETE], ids=["open", "closed"])
def test_copies_of_built_in_objects_have_no_findings(target: Release, assumptions: Assumptions) -> None:
    copies = builtin.build_manifests(target, target.newest_version)
    assert copies
    told = [
        found
        for found in findings(*copies, kubernetes=target.name, assumptions=assumptions)
        if found.rule not in _VERSIONS
    ]
    assert told == []


@pytest.mark.parametrize("target", _of_every_release())
def test_copies_without_annotations_have_no_findings(target: Release) -> None:
    copies = builtin.build_manifests(target, target.newest_version)
    for copy in copies:
        copy["metadata"].pop("annotations", None)
    assert [found for found in findings(*copies, kubernetes=target.name) if found.rule not in _VERSIONS] == []


_VERSIONS = ("APF701", "APF702")


"""Old releases serve only API versions that are deprecated, or off unless they are asked for."""


@pytest.mark.parametrize("target", _of_every_release())
def test_server_without_manifests_has_no_findings(target: Release) -> None:
    assert findings(kubernetes=target.name, assumptions=COMPLETE) == []


def test_objects_that_a_release_dropped_are_reported() -> None:
    """The objects of 1.33 checked for 1.34: the two FlowSchemas that it dropped."""
    leftovers = ["endpoint-controller", "workload-leader-election"]
    objects = builtin.build_manifests(parse_release("1.33"), "v1")
    found = findings(*objects, kubernetes="1.34")
    reported = [(finding.rule, finding.object.name) for finding in found if finding.object]
    # Their annotation makes the server delete them, which says more than that the release has none.
    assert [entry for entry in reported if entry[0] in ("APF405", "APF705")] == [("APF405", name) for name in leftovers]
    unmarked = [{**value, "metadata": {"name": value["metadata"]["name"]}} for value in objects]
    found = findings(*unmarked, kubernetes="1.34", only="APF7")
    assert [finding.message for finding in found] == [
        f'FlowSchema "{name}" is built in only up to Kubernetes 1.33' for name in leftovers
    ]
    assert {finding.severity for finding in found} == {"warning"}


def test_object_of_a_later_release_is_not_reported() -> None:
    assert not findings(flow_schema("system-node-high", version="v1beta1"), kubernetes="1.21", only="APF705")
