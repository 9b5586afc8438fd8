"""Which findings of several clusters are merged, and how their notes, help, fixes and related places are merged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from support.builders import FLAWED_FLOW_SCHEMA

from apflint import engine
from apflint.cluster_checking import Cluster, check_clusters, merge_problems
from apflint.edit.fixing import apply_fixes
from apflint.edit_operations import Fix
from apflint.effective_configuration import Assumptions
from apflint.engine import Options, load_inputs
from apflint.finding import Elsewhere, Problem
from apflint.load.source_text import Source
from apflint.location import TextRange
from apflint.releases import parse_release
from apflint.schema_violations import find_violations

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from apflint.effective_configuration import Effective
    from apflint.finding import Report
    from apflint.releases import Release
    from apflint.schema_violations import Violation

SOURCE = Source("a.yaml", "text " * 100)
PLACE = TextRange(SOURCE, 0, 4)
PROBLEM = Problem(PLACE, "message", notes=("Note.",), help="do this", example="apflint explain get pods")
FIX = Fix("remove it", safe=True)


def merge(*problems: Problem) -> list[Problem]:
    """Merge the problems of several clusters. Each cluster (c0, c1, ...) has one problem."""
    found = [((f"c{index}",), [("APF501", problem)]) for index, problem in enumerate(problems)]
    return [problem for _, problem in merge_problems(found)]


def test_problem_of_one_cluster() -> None:
    (problem,) = merge(PROBLEM._replace(fix=FIX))
    assert problem == PROBLEM._replace(fix=FIX, clusters=("c0",), example="apflint explain get pods --cluster c0")


def test_problem_of_no_cluster_stays() -> None:
    assert merge_problems([((), [("APF501", PROBLEM)])]) == [("APF501", PROBLEM)]


def test_equal_problems_are_one() -> None:
    (problem,) = merge(PROBLEM._replace(fix=FIX), PROBLEM._replace(fix=FIX))
    assert problem.clusters == ("c0", "c1")
    assert (problem.notes, problem.help, problem.fix) == (("Note.",), "do this", FIX)


def test_other_message_or_place_is_another_problem() -> None:
    others = [PROBLEM._replace(message="other"), PROBLEM._replace(place=TextRange(SOURCE, 5, 9))]
    others.append(PROBLEM._replace(severity="info"))
    assert len(merge(PROBLEM, *others)) == 4


def test_two_equal_problems_in_each_cluster_stay_two() -> None:
    twice = [("APF501", PROBLEM), ("APF501", PROBLEM)]
    merged = merge_problems([(("a",), twice), (("b",), twice)])
    assert [problem.clusters for _, problem in merged] == [("a", "b"), ("a", "b")]


def test_notes_and_help_that_differ_name_the_cluster() -> None:
    (problem,) = merge(
        PROBLEM._replace(notes=("Note.", "It takes 12 seats."), help="use a matchingPrecedence below 100"),
        PROBLEM._replace(notes=("Note.", "It takes 24 seats."), help="use a matchingPrecedence below 200"),
    )
    assert problem.notes == ("Note.", "In cluster c0: It takes 12 seats.")
    assert problem.help == "in cluster c0, use a matchingPrecedence below 100"


def test_fix_must_be_the_same_in_all_clusters() -> None:
    (problem,) = merge(PROBLEM._replace(fix=FIX), PROBLEM._replace(fix=FIX._replace(title="remove another")))
    assert problem.fix is None
    (problem,) = merge(PROBLEM._replace(fix=FIX), PROBLEM)
    assert problem.fix is None


def test_related_places_and_involved_objects_are_joined() -> None:
    places = [Elsewhere(TextRange(SOURCE, start, start + 1), "here") for start in range(30)]
    problems = [
        PROBLEM._replace(related=(places[0], place), involves=(("FlowSchema", f"s{index}"),))
        for index, place in enumerate(places)
    ]
    (problem,) = merge(*problems)
    assert problem.related == tuple(places[:20])
    assert problem.notes == ("Note.", "10 more related places in other clusters are not listed.")
    assert len(problem.involves or ()) == 30
    (problem,) = merge(problems[0], PROBLEM)
    assert problem.involves is None


def test_clusters_that_differ_only_in_their_names_are_analyzed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    analyzed: list[str] = []

    def count(effective: Effective, *arguments: Any) -> engine.Found:
        analyzed.append(effective.release.name)
        return engine.find_problems(effective, *arguments)

    monkeypatch.setattr("apflint.cluster_checking.find_problems", count)
    inputs = {"a.yaml": load_inputs([("a.yaml", FLAWED_FLOW_SCHEMA.encode())])}
    old = parse_release("1.30")
    clusters = [Cluster("x", ("a.yaml",)), Cluster("y", ("a.yaml",)), Cluster("z", ("a.yaml",), kubernetes=old)]
    report = check_clusters(inputs, clusters, Options(), ["a.yaml"])
    assert {finding.clusters for finding in report.findings} == {("x", "y", "z")}
    assert sorted(analyzed) == ["1.30", "1.37"]
    assert report.clusters == (("x", "1.37"), ("y", "1.37"), ("z", "1.30"))


def test_object_is_validated_once_for_each_release(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["base.yaml", "0.yaml", "1.yaml", "2.yaml"]
    inputs = {name: load_inputs([(name, FLAWED_FLOW_SCHEMA.encode())]) for name in names}
    validated: list[tuple[str, str]] = []

    def count(value: dict[str, object], kind: str, version: str, release: Release) -> tuple[Violation, ...]:
        validated.append((version, release.name))
        return find_violations(value, kind, version, release)

    monkeypatch.setattr("apflint.workspace.find_violations", count)
    releases = [parse_release("1.36"), parse_release("1.36"), parse_release("1.37")]
    clusters = [
        Cluster(str(index), ("base.yaml", f"{index}.yaml"), kubernetes=release)
        for index, release in enumerate(releases)
    ]
    check_clusters(inputs, clusters, Options(rules=("APF203",)), names)
    assert validated == [("v1", "1.36")] * 3 + [("v1", "1.37")] * 2


def test_fix_must_not_bring_a_finding_into_another_cluster() -> None:
    before = FLAWED_FLOW_SCHEMA.replace("verbs: [get]", 'verbs: [get, "*"]').encode()

    def check(inputs: Mapping[str, bytes], after: tuple[str, ...]) -> Report:
        report = engine.check(inputs.items(), Options(rules=("APF104", "APF210")))
        clusters = ("a",) if inputs["a.yaml"] == before else after
        findings = (finding._replace(clusters=clusters) for finding in report.findings)
        without = (finding._replace(fix=None) if finding.rule == "APF104" else finding for finding in findings)
        return report._replace(findings=tuple(without))

    for after, is_fixed in ((("a",), True), (("a", "b"), False)):
        result = apply_fixes({"a.yaml": before}, partial(check, after=after))
        assert [finding.rule for finding in result.fixed] == (["APF210"] if is_fixed else [])
        assert (result.inputs["a.yaml"] == before) is not is_fixed


def test_assumptions_of_clusters_differ() -> None:
    dangling = FLAWED_FLOW_SCHEMA.replace("workload-low", "none").encode()
    clusters = [Cluster("open", ("a.yaml",)), Cluster("closed", ("a.yaml",), assumptions=Assumptions(complete=True))]
    options = Options(rules=("APF401",))
    report = check_clusters({"a.yaml": load_inputs([("a.yaml", dangling)])}, clusters, options, ["a.yaml"])
    by_clusters = {finding.clusters: finding.message for finding in report.findings}
    assert by_clusters == {
        ("open",): 'unknown priority level "none"',
        ("closed",): 'priority level "none" does not exist',
    }
