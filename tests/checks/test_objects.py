"""APF404, APF405: objects with the names of built-in ones."""

from __future__ import annotations

import json

from support.builders import findings, flow_schema, priority_level


def test_a_mandatory_level_that_was_changed_is_shown_at_the_word_spec() -> None:
    ours = priority_level("catch-all", 77)
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF311")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"spec"'


def test_the_server_deletes_what_has_none_of_its_names() -> None:
    autoupdate = {"annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}
    ours = {**priority_level("workload-lo"), "metadata": {"name": "workload-lo", **autoupdate}}
    (found,) = findings(ours, only="APF405")
    assert "PriorityLevelConfiguration" in found.message
    for value in (priority_level("workload-low"), flow_schema("service-accounts")):
        same = {**value, "metadata": {**value["metadata"], **autoupdate}}
        assert not findings(same, only="APF405")
    # A name of the other kind is none.
    other = flow_schema("workload-low")
    (found,) = findings({**other, "metadata": {**other["metadata"], **autoupdate}}, only="APF405")
    assert "FlowSchema" in found.message


def test_a_leftover_of_an_earlier_release_that_the_server_deletes_may_be_removed() -> None:
    leftover = flow_schema("endpoint-controller")
    leftover["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "true"}
    (found,) = findings(leftover, only="APF405")
    assert "servers up to 1.33 created it" in found.message
    assert found.message.endswith('Remove it from your files, or write "false" to keep it as your own')


def test_suggested_objects_are_told_wherever_they_stand() -> None:
    kept = flow_schema("service-accounts")
    kept["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "false"}
    objects = (flow_schema("a"), kept, flow_schema("probes"), priority_level("x"), priority_level("workload-low", 77))
    told = findings(*objects, only="APF404")
    assert [found.object.name for found in told if found.object] == ["probes", "workload-low"]
