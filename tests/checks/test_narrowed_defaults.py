"""APF517: what redefined built-in FlowSchemas lose."""

from __future__ import annotations

import copy
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import findings, flow_schema, group, user

from apflint import builtin
from apflint.cli.app import run
from apflint.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.releases import Release


def built_in(name: str, release: Release = NEWEST) -> dict[str, Any]:
    """A manifest of a built-in FlowSchema, to be changed."""
    manifests = builtin.manifest(release, release.newest_version)
    found = next(each for each in manifests if (each["kind"], each["metadata"]["name"]) == ("FlowSchema", name))
    return copy.deepcopy({**found})


def without_cluster_scope(name: str, release: Release = NEWEST) -> dict[str, Any]:
    changed = built_in(name, release)
    for rule in changed["spec"]["rules"]:
        for entry in rule.get("resourceRules", ()):
            entry.pop("clusterScope", None)
    return changed


def test_a_forgotten_cluster_scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = without_cluster_scope("system-nodes")
    (found,) = findings(changed, only="APF517")
    assert (found.severity, found.field) == ("warning", "metadata.name")
    assert '"global-default" (49 seats) instead of "system" (74 seats). Add clusterScope: true' in found.message
    (tmp_path / "changed.json").write_text(json.dumps(changed), encoding="utf-8")
    command = re.search(r"`apflint explain (.*?)`", found.message)
    assert command is not None
    for files, flow_schema_name in ((["-f", str(tmp_path)], "global-default"), ([], "system-nodes")):
        assert run(["explain", *shlex.split(command[1]), *files, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["flowSchema"] == flow_schema_name


def test_a_forgotten_cluster_scope_is_one_finding_with_a_fix() -> None:
    (found,) = findings(without_cluster_scope("system-nodes"), only="APF5")
    assert found.rule == "APF517"
    assert [place.message for place in found.related] == ["lacks clusterScope: true"]
    assert found.fix is not None
    assert found.fix.title == "set clusterScope: true"
    fewer = without_cluster_scope("kube-scheduler")
    fewer["spec"]["rules"][0]["subjects"] = [user("system:another-scheduler")]
    reported = findings(fewer, only="APF5")
    assert sorted(each.rule for each in reported if each.rule in ("APF505", "APF517")) == ["APF505", "APF517"]
    assert all(each.fix is None for each in reported if each.rule == "APF517")


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_every_built_in_flow_schema_that_has_cluster_scope(release: Release) -> None:
    for name in builtin.suggested_names(release, "FlowSchema"):
        changed = without_cluster_scope(name, release)
        has_scope = changed["spec"] != built_in(name, release)["spec"]
        if (name, release.name) == ("global-default", "1.18"):  # which only service accounts match: it loses nothing
            has_scope = False
        found = findings(changed, only="APF517", kubernetes=release.name)
        assert [each.severity for each in found] == (
            [] if not has_scope else ["info"] if name in builtin.GENERAL_PURPOSE else ["warning"]
        )


def test_other_ways_to_lose_requests() -> None:
    fewer = built_in("kube-scheduler")
    fewer["spec"]["rules"][0]["subjects"] = [user("system:another-scheduler")]
    (found,) = findings(fewer, only="APF517")
    assert '"workload-high" (98 seats). Start from the rules that `apflint defaults` prints' in found.message
    later = built_in("system-leader-election")
    later["spec"]["matchingPrecedence"] = 850
    (found,) = findings(later, only="APF517")
    assert '--as system:kube-controller-manager` goes to the FlowSchema "kube-controller-manager"' in found.message


def test_a_redefinition_that_nothing_reaches_is_left_to_another_rule() -> None:
    later = built_in("system-nodes")
    later["spec"]["matchingPrecedence"] = 9950
    assert [found.rule for found in findings(later, only="APF5")] == ["APF501"]


def test_requests_that_stay_where_they_are() -> None:
    earlier = built_in("system-nodes")
    earlier["spec"]["matchingPrecedence"] = 450
    more = built_in("system-leader-election")
    more["spec"]["rules"][0]["subjects"].append(user("alice"))
    level = without_cluster_scope("kube-scheduler")
    level["spec"]["priorityLevelConfiguration"]["name"] = "global-default"  # where the others go as well
    for changed in (built_in("system-nodes"), earlier, more, level):
        assert not findings(changed, only="APF517")


def test_what_an_earlier_flow_schema_captures_is_not_lost() -> None:
    changed = built_in("system-nodes")
    changed["spec"]["rules"][0]["subjects"] = [group("system:nodes"), user("alice")]
    first = flow_schema("first", "workload-low", 10, subjects=[group("system:nodes")])
    assert not findings(changed, first, only="APF517")


def test_a_later_flow_schema_of_the_user_may_get_them() -> None:
    changed = without_cluster_scope("system-nodes")
    last = flow_schema("last", "workload-low", 9000, subjects=[user("*")])
    last["metadata"]["name"] = "all-others"
    last["spec"]["rules"] = built_in("global-default")["spec"]["rules"]
    (found,) = findings(changed, last, only="APF517")
    assert 'goes to the FlowSchema "all-others"' in found.message
    assert not findings(changed, last, only="APF507")
