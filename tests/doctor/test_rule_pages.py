"""The examples on the pages of rules about running servers give the shown findings, and recordings give the right findings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from support.recordings import MOMENTS, read_moment, recorded_objects
from support.server_examples import RULES, diagnose_files, example_files

from apflint import rule_catalogue
from apflint.doctor.rules import DIAGNOSES

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.finding import Report

MAX_MESSAGE_LENGTH = 110


def findings_of_moment(*moments: str) -> Report:
    parts = {part.source.name: part.source.text for moment in moments for part in read_moment(moment)}
    objects = {"kind": "List", "apiVersion": "v1", "items": recorded_objects(moments[-1])}
    return diagnose_files({**parts, "objects.yml": json.dumps(objects)})


def test_every_rule_has_a_function() -> None:
    assert sorted(DIAGNOSES) == RULES


@pytest.mark.parametrize("rule_id", RULES)
def test_bad_example(rule_id: str, snapshot: SnapshotAssertion) -> None:
    found = diagnose_files(example_files(rule_catalogue.read_rule(rule_id), "Bad")).findings
    own = [finding for finding in found if finding.rule == rule_id]
    assert own
    lines = []
    for finding in own:
        lines += [f"{finding.file}:{finding.span.line} {finding.severity}: {finding.message}"]
        lines += [f"    about: {finding.object.kind} {finding.object.name}"] if finding.object else []
        lines += [*(f"    note: {note}" for note in finding.notes), f"    help: {finding.help}"]
    assert lines == snapshot


@pytest.mark.parametrize("rule_id", RULES)
def test_good_example_is_just_short_of_a_finding(rule_id: str) -> None:
    files = example_files(rule_catalogue.read_rule(rule_id), "Good")
    assert files
    assert rule_id not in {finding.rule for finding in diagnose_files(files).findings}


@pytest.mark.parametrize("rule_id", RULES)
def test_form_of_messages_notes_and_help(rule_id: str) -> None:
    for finding in diagnose_files(example_files(rule_catalogue.read_rule(rule_id), "Bad")).findings:
        message = re.sub(r'"[^"]*"', "x", finding.message)
        assert not message[0].isupper() or message.startswith(("FlowSchema", "TimedoutRequests")), message
        assert not re.search(r"[.!?](\s|$)", message), message
        assert len(message) <= MAX_MESSAGE_LENGTH, message
        assert all(note.endswith(".") for note in finding.notes)
        assert finding.help
        assert not finding.help.endswith(".")
        assert finding.help[0].islower()


@pytest.mark.parametrize("moment", ["0-idle"])
def test_idle_server_has_no_finding_above_info(moment: str) -> None:
    report = findings_of_moment(moment)
    assert {finding.severity for finding in report.findings} <= {"info"}
    # APF808 reports FlowSchemas without requests: no request of the load test has arrived yet.
    assert "APF808" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize("moment", MOMENTS)
def test_limits_and_objects_are_those_of_the_manifests(moment: str) -> None:
    found = [finding.message for finding in findings_of_moment(moment).findings if finding.rule in ("APF806", "APF807")]
    assert found == []


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if moment[0] > "0"])
def test_recorded_findings(moment: str, snapshot: SnapshotAssertion) -> None:
    found = findings_of_moment(moment).findings
    assert [f"{finding.severity} {finding.rule} {finding.message}" for finding in found] == snapshot
