"""Contradictions between a log and a configuration: rejections while the level has free seats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.audit_logs import FIXTURES, event, replay_json, write_log

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

REJECTED = {"responseStatus": {"code": 429}, "annotations": None}


@pytest.mark.parametrize(("seats", "is_contradiction"), [(600, True), (1, False)])
def test_rejections_with_free_seats_are_a_contradiction(
    seats: int, is_contradiction: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [event(auditID=str(number), **(REJECTED if number else {})) for number in range(3)]
    log = write_log(tmp_path / "audit.log", events)
    options = ("--isolated", "-f", "defaults:1.36", "--server-concurrency", seats)
    found = replay_json(capsys, log, *options)["contradictions"]
    assert [level["priorityLevel"] for level in found] == (["global-default"] if is_contradiction else [])
    for level in found:
        assert level["rejected"] == 2
        assert level["peakSeats"] == 1
        assert level["minLimit"] > 1
    for output_format in ("text", "markdown", "html"):
        assert run(["replay", str(log), *map(str, options), "--format", output_format]) == 0
        text = capsys.readouterr().out
        assert ("contradicts this configuration" in text) is is_contradiction
        if is_contradiction:  # the sentence about the contradiction precedes the figures
            assert text.index("contradicts this configuration") < text.index("API server:")


def test_seats_of_lists_with_unknown_counts_may_explain_rejections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list may have used all seats. So there is a contradiction only if the number of objects is known."""
    events = [event(auditID=str(number), **(REJECTED if number > 4 else {})) for number in range(7)]
    log = write_log(tmp_path / "audit.log", events)
    options = ("--isolated", "-f", "defaults:1.36", "--server-concurrency", 600)
    assert replay_json(capsys, log, *options)["contradictions"] == []
    (level,) = replay_json(capsys, log, *options, "--objects", "pods=1:1000")["contradictions"]
    assert level["peakSeats"] < level["minLimit"]


def test_recording_does_not_contradict_its_own_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    objects = FIXTURES / "live" / "objects-begin.json"
    log = FIXTURES / "live" / "audit.log.gz"
    report = replay_json(capsys, log, "-f", objects, "--server-concurrency", 30, "--kubernetes", "1.36")
    assert any(level["rejected"] for level in report["levels"])
    assert report["contradictions"] == []
