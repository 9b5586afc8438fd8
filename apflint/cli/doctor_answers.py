"""Answers `apflint doctor`: diagnoses the observed API servers, and renders the report."""

from __future__ import annotations

import json
import sys
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.exit_codes import ExitCode
from apflint.cli.progress import show_progress
from apflint.cli.reporting import Output, exit_code_of
from apflint.cli.terminal import style
from apflint.doctor.causes import conclude
from apflint.doctor.causes.suggested_commands import fit_command
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.rule_runner import diagnose
from apflint.doctor.rules import DIAGNOSES
from apflint.output.configuration_line import name_configuration
from apflint.output.doctor import describe_gaps, report_doctor, state_json
from apflint.output.doctor_causes import causes_json, group_findings, name_verdict
from apflint.output.doctor_period import describe_periods, periods_json, report_comparison, report_periods
from apflint.output.findings import render
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.run import Answer, read, show

if TYPE_CHECKING:
    from apflint.doctor.causes import Conclusion
    from apflint.doctor.level_state import ServerState
    from apflint.doctor.snapshot import Server
    from apflint.effective_configuration import Effective
    from apflint.finding import Report
    from apflint.settings.model import Settings
    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import KubectlOptions
    from apflint.sources.prometheus_server import PrometheusReading

_FORMATS_WITH_TABLES = ("text", "json", "markdown", "html")
"""Formats that show findings and the state of the server. For other formats, missing metrics are printed as notes."""


class DoctorQuestion(NamedTuple):
    """The settings of a diagnosis, the manifests to compare with, and the form of the report."""

    settings: Settings
    manifests: InputRequest
    output_format: str
    color: str
    verbose: bool
    exit_zero: bool


class Observed(NamedTuple):
    """The API servers whose metrics or dumps were read, and notes about servers that were not read."""

    servers: tuple[Server, ...]
    objects: Effective | None = None
    """The objects of the running cluster, or None if they are unknown."""
    coverage: tuple[str, ...] = ()
    """Sentences about API servers whose metrics were not read."""
    notes: tuple[str, ...] = ()
    reading: PrometheusReading | None = None
    """The data that was read from Prometheus, or None without --prometheus."""
    is_live: bool = True
    """Whether kubectl reads the running cluster."""


class _Diagnosis(NamedTuple):
    states: list[ServerState]
    report: Report
    conclusion: Conclusion
    configuration: str | None
    """Description of the manifests that the servers are compared with, or None without manifests."""
    reading: PrometheusReading | None
    assumed_release: str | None = None
    """The release that reads the manifests, such as `1.37`, if nothing states the release of the servers."""


def answer_question(question: DoctorQuestion, observed: Observed) -> Answer:
    """Diagnose the observed API servers, and return the report, the notes and the exit status.

    If no server was observed, return an answer that says so.
    """
    if not observed.servers:  # possible with --watch, while no server answers
        return Answer("No API server answers.\n", errors=observed.notes)
    found = _diagnose(question, observed)
    text = _render(found, question)
    return Answer(text, tuple(_list_notes(found, question, observed)), status=_find_status(found, question))


def _diagnose(question: DoctorQuestion, observed: Observed) -> _Diagnosis:
    settings, current = question.settings, observed.objects
    release = settings.kubernetes if "kubernetes" in settings.origins else current.release if current else None
    states = [compute_state(server, release) for server in observed.servers]
    effective = current
    description = assumed_release = None
    if question.manifests.words:
        shown = next((state.release for state in states if state.release is not None), None)
        configuration = read(question.manifests.assume(shown))
        effective, description = configuration.effective, configuration.description
        assumed_release = effective.release.name if configuration.is_release_assumed else None
    expected = settings.server_concurrency if "server_concurrency" in settings.origins else None
    evidence = [Evidence(state, effective, expected, current) for state in states]
    chosen = settings.to_options()
    conclusion = conclude(states, "now" if observed.reading is None else "in this interval")
    conclusion = conclusion._replace(limits=(*observed.coverage, *conclusion.limits))
    if not observed.is_live:
        options = [text for word in question.manifests.words for text in ("-f", word)]
        conclusion = conclusion.map_commands(lambda command: fit_command(command, options))
    report = diagnose(evidence, chosen.rules, chosen.adjust, conclusion)
    return _Diagnosis(states, report, conclusion, description, observed.reading, assumed_release)


def _list_notes(found: _Diagnosis, question: DoctorQuestion, observed: Observed) -> list[str]:
    """Return the notes to print on standard error.

    An output format that is not in `_FORMATS_WITH_TABLES` shows only findings. For such a format, the
    notes also contain the missing metrics and servers, and the diagnosed intervals.
    """
    notes = list(observed.notes)
    if found.assumed_release is not None:
        notes.append(
            f"apflint assumes the newest release that it knows, Kubernetes {found.assumed_release}, for the manifests:"
            " choose another release with --kubernetes"
        )
    if not DIAGNOSES.keys() & question.settings.to_options().rules:
        notes.append("the selected rules are not about a running server: select rules from APF801 to APF821")
    if question.output_format not in _FORMATS_WITH_TABLES:
        notes += [*observed.coverage, *(gap for state in found.states for gap in describe_gaps(state))]
        notes += describe_periods(found.reading) if found.reading is not None else []
    return notes


def _find_status(found: _Diagnosis, question: DoctorQuestion) -> int:
    fail_on = question.settings.fail_on
    status = exit_code_of(found.report, Output(question.output_format, fail_on, exit_zero=question.exit_zero))
    # There are no findings for causes about storage, lists and differences between servers. So warnings
    # among the causes also determine the exit status.
    if found.conclusion.warnings and fail_on in ("warning", "info") and not question.exit_zero:
        status = ExitCode.FINDINGS
    return status


def _render(found: _Diagnosis, question: DoctorQuestion) -> str:
    states, report, conclusion, configuration, reading, _ = found
    output_format = question.output_format
    how = style(question.color, quiet=True, verbose=question.verbose)
    if output_format == "json":
        findings = json.loads(render(report, "json", how))
        causes = causes_json(conclusion, group_findings(conclusion, states, report))
        head = {"schema": findings.pop("schema"), **causes, "servers": [state_json(state) for state in states]}
        if reading is not None:
            head["prometheus"] = periods_json(reading, states)
        return to_json(name_configuration({**head, **findings, "configuration": configuration}, configuration), 2)
    if output_format in _FORMATS_WITH_TABLES:
        start = report_periods(reading) if reading is not None else ()
        more = report_comparison(states, conclusion) if reading is not None else ()
        is_selected = "select" in question.settings.origins
        blocks = report_doctor(states, report, conclusion, how, configuration, more, is_selected=is_selected)
        return render_report(name_verdict(conclusion), chain(start, blocks), output_format, how)
    return render(report, output_format, how)


def diagnose_live(question: DoctorQuestion, kubectl: KubectlOptions, watch: float | None) -> int:
    """Print one report about all API servers that answer, and return the exit code.

    If `watch` is set, the format is text and standard output is a terminal, print reports until the
    user presses Ctrl-C.
    """
    from apflint.sources.live_servers import read_live_servers, watch_live_servers

    if watch is not None and question.output_format == "text" and sys.stdout.isatty():
        from apflint.cli.screen_updates import watch as show_on_screen

        return show_on_screen(
            answer_question(question, Observed(*found))
            for found in watch_live_servers(kubectl, question.manifests, watch)
        )
    with show_progress("Reading the cluster"):
        found = read_live_servers(kubectl, question.manifests, watch)
    answer = answer_question(question, Observed(*found))
    if watch is not None and question.output_format == "text":
        from apflint.cli.screen_updates import format_time

        # If a file collects the reports of several runs, the time identifies a report.
        answer = answer._replace(text=f"{format_time()}\n{answer.text}")
    return show(answer)
