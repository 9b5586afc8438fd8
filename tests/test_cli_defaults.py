"""`apflint defaults`: YAML that reads back as the recorded objects, JSON, and differences between releases."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
import yaml

from apflint import builtin
from apflint.output.defaults import ABSENT, changes, run
from apflint.releases import RELEASES, Release, parse_release

EVERY_RELEASE = pytest.mark.parametrize("target", RELEASES, ids=lambda r: r.name)


@EVERY_RELEASE
def test_yaml_reads_back_as_the_manifest(target: Release) -> None:
    # PyYAML reads YAML 1.1, as Kubernetes does.
    values = list(yaml.safe_load_all(run(target.name)))
    assert values == builtin.build_manifests(target, target.newest_version)


@EVERY_RELEASE
def test_json_is_a_list_of_the_manifest(target: Release) -> None:
    answer = json.loads(run(target.name, output="json"))
    assert answer == {
        "kind": "List",
        "apiVersion": "v1",
        "items": builtin.build_manifests(target, target.newest_version),
    }


def test_the_default_is_the_newest_release() -> None:
    assert run() == run("1.37", "v1")
    assert run("1.36", "flowcontrol.apiserver.k8s.io/v1") == run("v1.36.2", "v1")


def test_the_comments_name_release_source_and_role() -> None:
    text = run("1.36")
    head, _, body = text.partition("\n\n")
    assert all(line.startswith("# ") for line in head.splitlines())
    assert "Kubernetes 1.36" in head
    assert "kube-apiserver 1.36.2" in head.replace("\n# ", " ")
    documents = body.split("---\n")
    roles = [entry.role for entry in builtin.list_objects(parse_release("1.36"))]
    assert [document.splitlines()[0] for document in documents] == [f"# {role}" for role in roles]
    assert 'apf.kubernetes.io/autoupdate-spec: "true"' in text
    assert max(map(len, text.splitlines())) <= 120


def test_versions_that_are_not_served_are_written_with_a_warning() -> None:
    assert "no longer serves v1beta1. To apply these objects there, take v1beta3." in run("1.26", "v1beta1")
    assert "only when it is started with --runtime-config=" in run("1.20", "v1alpha1")
    assert "serves" not in run("1.26", "v1beta2")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1.18", "v1"), 'it came with 1.29. The newest that 1.18 has is "v1alpha1".'),
        (("1.36", "v2"), '"v2" is no version of flowcontrol.apiserver.k8s.io. There are "v1", "v1beta3"'),
        (("1.99", None), '"1.99" is too new'),
    ],
)
def test_what_cannot_be_asked_for(arguments: tuple[str, str | None], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        run(*arguments)


@EVERY_RELEASE
def test_a_release_does_not_differ_from_itself(target: Release) -> None:
    assert changes(target, target) == []
    text = run(diff=(target.name, target.name))
    assert "The built-in objects are the same." in text
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize(("old", "new"), list(pairwise(RELEASES)), ids=lambda r: r.name)
def test_a_difference_says_all_that_changes(old: Release, new: Release) -> None:
    version = new.newest_version
    specs: dict[Any, Any] = {
        e: v["spec"] for e, v in zip(builtin.list_objects(old), builtin.build_manifests(old, version), strict=True)
    }
    wanted = {
        e: v["spec"] for e, v in zip(builtin.list_objects(new), builtin.build_manifests(new, version), strict=True)
    }
    for change in changes(old, new):
        if change.what == "removed":
            del specs[change.entry]
        elif change.what == "added":
            specs[change.entry] = change.spec
        else:
            assert change.fields
            assert specs[change.entry] != change.spec
            specs[change.entry] = change.spec
    assert specs == wanted
    back = {(c.entry, c.what) for c in changes(new, old)}
    opposite = {"added": "removed", "removed": "added", "changed": "changed"}
    assert back == {(c.entry, opposite[c.what]) for c in changes(old, new)}


def test_what_changes_from_1_33_to_1_36() -> None:
    assert run(diff=("1.33", "1.36")) == (
        """\
From Kubernetes 1.33 to 1.36:

removed: suggested FlowSchema endpoint-controller
  matchingPrecedence 150, priority level "workload-high"

removed: suggested FlowSchema workload-leader-election
  matchingPrecedence 200, priority level "leader-election"

19 other built-in objects stay as they are.
A 1.36 server deletes a removed object that is still there, unless the object is marked as an administrator's own \
(apf.kubernetes.io/autoupdate-spec: "false").
API versions served by default, as before: v1.
"""
    )


def test_fields_are_compared_one_by_one() -> None:
    (change,) = (c for c in changes(parse_release("1.23"), parse_release("1.24")) if c.what == "changed")
    assert change.entry.name == "system-leader-election"
    (field,) = change.fields
    assert field.field == "spec.rules[0].resourceRules[0]"
    assert isinstance(field.old, dict)
    assert field.old["resources"] == ["endpoints", "configmaps"]
    assert field.new is ABSENT
    text = run(diff=("1.19", "1.20"))
    assert "changed: mandatory PriorityLevelConfiguration catch-all" in text
    assert "  spec.limited.assuredConcurrencyShares: 1 becomes 5" in text
    assert "API versions served by default: none becomes v1beta1." in text
    assert "leaves objects that exist as they are" in text
    assert "spec.limited.lendablePercent: absent becomes 25" in run(diff=("1.25", "1.26"))
    assert 'resourceRules[0]: {"verbs"' in run(diff=("1.23", "1.24"))


def test_a_downgrade_says_nothing_about_what_servers_do() -> None:
    text = run(diff=("1.36", "1.28"))
    assert "added: suggested FlowSchema endpoint-controller" in text
    assert "API versions served by default: v1 becomes v1beta3, v1beta2." in text
    assert "server" not in text.replace("served", "")


def test_the_difference_as_json() -> None:
    answer: dict[str, Any] = json.loads(run(diff=("1.25", "1.26"), output="json"))
    assert (answer["from"], answer["to"]) == ("1.25", "1.26")
    assert answer["served"] == {"from": ["v1beta2", "v1beta1"], "to": ["v1beta3", "v1beta2"]}
    assert (answer["added"], answer["removed"]) == ([], [])
    fields = {entry["name"]: entry["fields"] for entry in answer["changed"]}
    assert fields["node-high"] == [{"field": "spec.limited.lendablePercent", "new": 25}]
    later = json.loads(run(diff=("1.33", "1.34"), output="json"))
    assert [entry["name"] for entry in later["removed"]] == ["endpoint-controller", "workload-leader-election"]
