"""Copies of the built-in objects of a release have no findings."""

from __future__ import annotations

from typing import Any

import pytest
from brute_force import server
from brute_force.configurations import built_in
from brute_force.variants import variant, without_copies
from support.builders import COMPLETE, OPEN, findings, flow_schema, full_text

from apflint import builtin
from apflint.effective_configuration import Assumptions
from apflint.releases import RELEASES, Release, parse_release


def _of_every_release() -> list[Any]:
    return [pytest.param(release, id=release.name) for release in RELEASES]


@pytest.mark.parametrize("target", _of_every_release())
@pytest.mark.parametrize("assumptions", [OPEN, COMPLETE], ids=["open", "closed"])
def test_copies_of_built_in_objects_have_no_findings(target: Release, assumptions: Assumptions) -> None:
    copies = builtin.build_manifests(target, target.newest_version)
    assert copies
    reported = [
        finding
        for finding in findings(*copies, kubernetes=target.name, assumptions=assumptions)
        if finding.rule not in _VERSIONS
    ]
    assert reported == []


@pytest.mark.parametrize("target", _of_every_release())
def test_copies_without_annotations_have_no_findings(target: Release) -> None:
    copies = builtin.build_manifests(target, target.newest_version)
    for copy in copies:
        copy["metadata"].pop("annotations", None)
    assert [finding for finding in findings(*copies, kubernetes=target.name) if finding.rule not in _VERSIONS] == []


_VERSIONS = ("APF701", "APF702")
"""Rules about API versions. Their findings are expected, because old releases serve only versions that are deprecated
or disabled by default."""


@pytest.mark.parametrize("target", _of_every_release())
def test_server_without_manifests_has_no_findings(target: Release) -> None:
    assert findings(kubernetes=target.name, assumptions=COMPLETE) == []


def test_objects_that_a_release_dropped_are_reported() -> None:
    """Checking the objects of 1.33 for 1.34 reports the two FlowSchemas that 1.34 dropped."""
    leftovers = ["endpoint-controller", "workload-leader-election"]
    objects = builtin.build_manifests(parse_release("1.33"), "v1")
    found = findings(*objects, kubernetes="1.34")
    reported = [(finding.rule, finding.object.name) for finding in found if finding.object]
    # The server deletes these objects because of their annotation. APF405 reports this instead of APF705.
    assert [entry for entry in reported if entry[0] in ("APF405", "APF705")] == [("APF405", name) for name in leftovers]
    unmarked = [{**value, "metadata": {"name": value["metadata"]["name"]}} for value in objects]
    found = findings(*unmarked, kubernetes="1.34", only="APF7")
    assert [finding.message for finding in found] == [
        f'Kubernetes 1.33 is the last release with the built-in FlowSchema "{name}"' for name in leftovers
    ]
    assert {finding.severity for finding in found} == {"warning"}


def test_object_of_a_later_release_is_not_reported() -> None:
    assert not findings(flow_schema("system-node-high", version="v1beta1"), kubernetes="1.21", only="APF705")


LIVE = Assumptions(complete=True, defaults=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_copies_of_built_in_objects_change_no_finding(seed: int) -> None:
    """Findings stay the same if the built-in objects of a cluster are in a file, in the context, or read with `--live`."""
    config = without_copies(variant(f"copies {seed}"))
    known = {(manifest["kind"], server.name_of(manifest)) for manifest in config.objects}
    copies = [
        manifest
        for manifest in built_in(config.kubernetes)
        if (manifest["kind"], server.name_of(manifest)) not in known
    ]
    for assumptions, with_dump in ((OPEN, OPEN), (COMPLETE, COMPLETE), (COMPLETE, LIVE)):
        expected = texts(config.manifests, config.context, assumptions, config.kubernetes)
        for manifests, context in (
            ((*config.manifests, *copies), config.context),
            (config.manifests, (*copies, *config.context)),
        ):
            assert texts(manifests, context, with_dump, config.kubernetes) == expected


def texts(
    manifests: tuple[Any, ...], context: tuple[Any, ...], assumptions: Assumptions, kubernetes: str
) -> list[tuple[str, str, str]]:
    found = findings(*manifests, context=context, assumptions=assumptions, kubernetes=kubernetes)
    return sorted((finding.rule, finding.severity, full_text(finding)) for finding in found)
