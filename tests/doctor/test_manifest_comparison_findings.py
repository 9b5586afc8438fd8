"""Rules that compare a server with manifests: the objects and places of their findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import builders
from support.server_examples import diagnose_files

from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.manifest_comparison_findings import objects_differ
from apflint.doctor.server_seats import find_totals
from apflint.doctor.snapshot import group_servers, parse_part
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.releases import NEWEST
from apflint.workspace import build_workspace

from .test_rules import level, lines

if TYPE_CHECKING:
    from apflint.finding import Finding

TOTAL = 'upper_limit_seats{priority_level="exempt"} 600'
NAMES = (
    "catch-all",
    "exempt",
    "global-default",
    "leader-election",
    "node-high",
    "system",
    "workload-high",
    "workload-low",
)
ALL = [f'nominal_limit_seats{{priority_level="{name}"}} 0' for name in NAMES]


def find(rule: str, files: dict[str, str], server_concurrency: int | None = None) -> list[Finding]:
    return [finding for finding in diagnose_files(files, server_concurrency).findings if finding.rule == rule]


def effective_of(name: str, *manifests: dict[str, Any]) -> Effective:
    files = [(name, json.dumps(item).encode()) for item in manifests]
    return Effective(build_workspace(load_inputs(files), NEWEST))


def test_flow_schemas_of_only_one_side() -> None:
    """A dangling FlowSchema counts as existing. Built-in FlowSchemas exist on both sides."""
    both = builders.flow_schema("both"), builders.flow_schema("dangling", "absent")
    own = effective_of("own.yml", *both, builders.flow_schema("own"))
    live = effective_of("live.yml", *both, builders.flow_schema("live"))
    (server,) = group_servers([parse_part("m", lines(*ALL))])
    found = list(objects_differ(Evidence(compute_state(server), own, None, live)))
    assert [(item.object, item.problem.message, item.problem.help) for item in found] == [
        (
            ("FlowSchema", "live"),
            'the server has the FlowSchema "live", which the manifests do not define',
            "add the manifest of the FlowSchema, or delete the FlowSchema from the cluster",
        ),
        (("FlowSchema", "own"), 'the server does not have the FlowSchema "own"', "apply the manifest"),
    ]
    assert [item.problem.notes for item in found] == [
        (),
        ("On the server, the requests for which this FlowSchema is intended go to other FlowSchemas.",),
    ]
    assert [item.problem.place.document.source.name for item in found] == ["live.yml", "own.yml"]  # type: ignore[union-attr]  # all places are in manifests
    assert list(objects_differ(Evidence(compute_state(server), own, None, own))) == []


def test_flow_schema_that_only_the_analysis_assumes_is_missing() -> None:
    """Every configuration has `catch-all`, even if the cluster does not show it."""
    live = Effective(build_workspace([], NEWEST), Assumptions(complete=True, defaults=False))
    (server,) = group_servers([parse_part("m", lines(*ALL))])
    found = objects_differ(Evidence(compute_state(server), effective_of("own.yml"), None, live))
    assert ("FlowSchema", "catch-all") in {item.object for item in found}


@pytest.mark.parametrize(("schema", "place", "count"), [
    ("gone", "workload-low", 1),
    ("gone", "gone", 0),  # APF815 reports metrics of a deleted level
    ("own", "workload-low", 0),
    ("service-accounts", "workload-low", 0),
])  # fmt: skip
def test_flow_schema_of_the_metrics(schema: str, place: str, count: int) -> None:
    row = f'dispatched_requests_total{{flow_schema="{schema}",priority_level="{place}"}} 1'
    dump = "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests\n"
    dump += "".join(f"{name}, 0, true, false, 0, 0\n" for name in NAMES)
    files = {"m": lines(*ALL, row, row.replace('"} 1', '"} 2').replace("dispatched", "rejected")), "d": dump}
    found = find("APF807", {**files, "own.yml": json.dumps(builders.flow_schema("own"))})
    assert [(item.severity, item.message, item.object and item.object.name) for item in found] == [
        ("info", 'the server had the FlowSchema "gone", which the manifests do not define', "gone")
    ] * count
    assert [item.notes for item in found] == [
        ("The metrics of a deleted FlowSchema stay until the server restarts.",)
    ] * count


def test_level_that_the_server_does_not_have() -> None:
    """APF807 reports the level, so APF819 does not report the FlowSchemas that reference it."""
    manifests = (
        builders.priority_level("batch"),
        builders.flow_schema("jobs", "batch"),
        builders.flow_schema("x", "absent"),
    )
    files = {f"{number}.yml": json.dumps(item) for number, item in enumerate(manifests)}
    report = diagnose_files({"m": lines(*ALL), **files})
    found = [
        (item.rule, item.object and item.object.name) for item in report.findings if item.rule in ("APF807", "APF819")
    ]
    assert sorted(found) == [("APF807", "batch"), ("APF819", "x")]
    (missing,) = (item for item in report.findings if item.rule == "APF807")
    assert (missing.file, missing.message) == ("0.yml", 'the server does not have the priority level "batch"')


def test_other_total_is_shown_at_the_level_exempt() -> None:
    metrics = lines(*level("low", 10, 10, 610, 10, 0), 'nominal_limit_seats{priority_level="exempt"} 0', TOTAL)
    (found,) = find("APF806", {"m": metrics}, 500)
    assert (found.message, found.span.line) == ("the server has a concurrency limit of 600 seats instead of 500", 7)
    assert (found.notes, found.help) == (
        (),
        "use --server-concurrency 600, or change --max-requests-inflight and --max-mutating-requests-inflight of kube-apiserver",
    )
    assert find("APF806", {"m": metrics}, 600) == find("APF806", {"m": metrics}) == []


@pytest.mark.parametrize(("shown", "notes"), [
    ((24, 24, 624), []),
    ((25, 24, 624), ['"batch" has the nominal limit 25, but the manifests result in 24.']),
    ((24, 23, 624), ['"batch" has the min limit 23, but the manifests result in 24.']),
    ((24, 24, 625), ['"batch" has the max limit 625, but the manifests result in 624.']),
    (
        (23, 25, 623),
        [
            '"batch" has the nominal limit 23, but the manifests result in 24.',
            '"batch" has the min limit 25, but the manifests result in 24.',
            '"batch" has the max limit 623, but the manifests result in 624.',
        ],
    ),
])  # fmt: skip
def test_each_limit_is_compared(shown: tuple[int, int, int], notes: list[str]) -> None:
    metrics = lines(*level("batch", *shown, 24, 0), 'nominal_limit_seats{priority_level="exempt"} 0', TOTAL)
    found = find("APF806", {"m": metrics, "a.yml": json.dumps(builders.priority_level("batch"))})
    assert [list(item.notes[:-1]) for item in found] == [notes] * bool(notes)
    assert all(
        (item.message, item.span.line) == ("the limits of 1 level differ from the manifests", 1) for item in found
    )


def test_at_most_five_limits_are_listed() -> None:
    rows = [f'nominal_limit_seats{{priority_level="{name}"}} 7' for name in NAMES if name != "exempt"]
    (found,) = find(
        "APF806",
        {
            "m": lines(*rows, 'nominal_limit_seats{priority_level="exempt"} 0', TOTAL),
            "a.yml": json.dumps(builders.flow_schema("x")),
        },
    )
    assert found.message == "the limits of 7 levels differ from the manifests"
    assert len(found.notes) == 6


@pytest.mark.parametrize(("place", "words"), [
    (0, "lendablePercent or borrowingLimitPercent differ."),
    (1, "lendablePercent or borrowingLimitPercent differ."),
    (-1, "so the server has other manifests."),
])  # fmt: skip
def test_total_at_the_ends_of_the_range_explains_the_nominal_limits(place: int, words: str) -> None:
    """Limits are rounded, so the same nominal limits result from a range of server concurrency limits.

    The min limit of the level also differs from the manifest. A limit from the range explains only the nominal limit.
    """
    manifest = builders.priority_level("batch")
    totals = find_totals({"batch": 24}, effective_of("a.yml", manifest).limits)
    assert totals is not None
    total = totals[0] - 1 if place < 0 else totals[place]
    metrics = lines(
        *level("batch", 24, 7, 24 + total, 24, 0),
        'nominal_limit_seats{priority_level="exempt"} 0',
        TOTAL.replace("600", str(total)),
    )
    (found,) = find("APF806", {"m": metrics, "a.yml": json.dumps(manifest)})
    assert found.notes[-1].endswith(words)
