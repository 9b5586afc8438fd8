"""Renders the verdict about API servers, and the causes of waits and rejections, as blocks and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.budgets import MAX_SHOWN_CAUSES
from apflint.output.blocks import DOCUMENTS, HTML, TEXT, Bullets, Command, Group, Heading, Only, Prose, Text, get_plain
from apflint.output.configuration_line import report_configuration
from apflint.wording import count_noun, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.doctor.causes.conclusion import Conclusion, OverloadCause
    from apflint.doctor.level_state import ServerState
    from apflint.finding import Report
    from apflint.output.blocks import Block, Inline, Tone

CAUSE_URL = "https://github.com/apflint/apflint/blob/main/docs/reference/causes.md#{id}"
"""URL of the documentation of a cause."""
_VERDICTS = {
    "healthy": "Healthy",
    "past": "Healthy now, and overloaded in the past",
    "overloaded": "Overloaded",
    "not-apf": "Not caused by API Priority and Fairness",
}
_TONES: dict[str, Tone] = {"healthy": "good", "past": "good", "overloaded": "error", "not-apf": "error"}
_INDENT = "  "
"""Indentation of the lines about a cause in text."""
_REMARK = f"{_INDENT}= "
"""Marker of remarks in text, as in diagnostics."""


def name_verdict(conclusion: Conclusion) -> str:
    """Return the verdict with its summary, as the title of a page."""
    return f"{_VERDICTS[conclusion.verdict]}. {conclusion.summary}"


def report_causes(
    states: Sequence[ServerState], conclusion: Conclusion, configuration: str | None = None
) -> Iterator[Block]:
    """Yield the verdict, its basis, and the causes, worst first. `configuration` describes the manifests, or is None."""
    basis = [] if configuration is None else [report_configuration(configuration)]
    verdict = Text(f"{_VERDICTS[conclusion.verdict]}.", _TONES[conclusion.verdict])
    servers = Prose([*describe_servers(states)], "dim")
    yield Only(TEXT, [Group([Prose([(verdict, f" {conclusion.summary}")]), servers, *basis])])
    yield Only(DOCUMENTS, [Heading(_VERDICTS[conclusion.verdict], 1), Prose([conclusion.summary]), *basis])
    yield Only(HTML, [Prose([*describe_servers(states, with_files=False)], "dim")])
    for number, cause in enumerate(conclusion.causes[:MAX_SHOWN_CAUSES], 1):
        yield Group(_report_cause(number, cause, is_alone=len(states) == 1))
    if (more := len(conclusion.causes) - MAX_SHOWN_CAUSES) > 0:
        yield Prose([f"Not shown: {count_noun(more, 'further cause')}. JSON (--format json) has all."])
    if conclusion.limits:
        yield Prose(conclusion.limits)


def describe_servers(states: Sequence[ServerState], *, with_files: bool = True) -> Iterator[str]:
    """Yield a line about each server: its seats, release and age, and the names of its files.

    If `with_files` is false, the line names only the first file, and states the number of other files.
    """
    for state in states:
        metrics = state.server.last.metrics
        age = metrics.age_seconds if metrics is not None else None
        parts = [f"{state.total} seats"] if state.total is not None else []
        parts += [f"Kubernetes {state.release.name}"] if state.release is not None else []
        parts += [f"up {format_duration(age * 1e6)}"] if age else []
        files = [source.name for snapshot in state.server.snapshots for source in snapshot.sources]
        named = ", ".join(files) if with_files else f"{files[0]} and {count_noun(len(files) - 1, 'more file')}"
        yield f"API server{''.join(f', {part}' for part in parts)}: {named if len(files) > 1 else files[0]}"


def name_server(state: ServerState) -> str:
    """Return the name that identifies a server in a cause: the file name of the newest metrics or dump of the server."""
    return state.server.last.sources[0].name


def _report_cause(number: int, cause: OverloadCause, *, is_alone: bool) -> Iterator[Block]:
    """Yield the description of a cause: what happens, place, evidence, actions, and what would not help."""
    name = Text(cause.cause, cause.severity)
    place: list[str | Text] = [*name_place(cause)]
    if not is_alone:
        place += [" at ", Text(cause.server, "name")]
    remark = "".join(map(get_plain, place))
    yield Only(TEXT, [Heading((f"{number} ", name), remark=remark), Bullets([cause.message], _INDENT)])
    yield Only(("markdown",), [Heading((f"{number}. ", name, ": ", *place)), Prose([cause.message])])
    yield Only(HTML, [Heading((f"{number}. ", name)), Prose([cause.message]), Prose([tuple(place)], "dim")])
    since: list[Inline] = [] if cause.since is None else [f"since: {cause.since}"]
    yield Bullets([*since, *cause.evidence], f"{_INDENT}- ")
    for action in cause.actions:
        yield Bullets([(Text("next", "bold"), f": {action.text}")], _REMARK)
        if action.command is not None:
            program, _, arguments = action.command.partition(" ")
            yield Command(program, arguments, len(_REMARK) + len(_INDENT))
    yield Bullets([(Text("would not help", "bold"), f": {text}") for text in cause.would_not_help], _REMARK)
    if cause.unsure is not None:
        yield Bullets([(Text("not certain", "bold"), f": {cause.unsure}")], _REMARK)


def name_place(cause: OverloadCause) -> Iterator[str | Text]:
    """Yield the level, FlowSchema, client and requests of a cause, as far as they are known."""
    levels = ", ".join(cause.levels)
    names = (("priority level ", levels), ("FlowSchema ", cause.schema), ("user ", cause.user))
    request = " ".join(filter(None, (cause.verb, cause.resource)))
    shown = [(label, name) for label, name in (*names, ("", request)) if name]
    for index, (label, name) in enumerate(shown):
        yield f"{', ' if index else ''}{label}"
        yield Text(name, "name")


def report_closing(conclusion: Conclusion, report: Report, *, is_verbose: bool) -> Prose:
    """Return the last line: the number of findings, and the command that shows all of them."""
    number = len(report.findings) + report.left_out
    findings = f" in {count_noun(number, 'finding')}" if number else ""
    hint = "." if is_verbose else ": --verbose shows all, with tables."
    if conclusion.warnings:
        return Prose([f"Found {count_noun(len(conclusion.warnings), 'cause')}{findings}{hint}"])
    details = f" {count_noun(number, 'finding')}{hint}" if number else ""
    return Prose([(Text("All good.", "good"), details)])


def causes_json(conclusion: Conclusion, findings: Sequence[Sequence[str]]) -> dict[str, object]:
    """Return the verdict and the causes as JSON. Unknown values are None.

    `findings` contains, for each cause, the rules of the findings that the cause explains.
    """
    return {
        "verdict": conclusion.verdict,
        "verdictMessage": conclusion.summary,
        "causes": [_cause_json(cause, rules) for cause, rules in zip(conclusion.causes, findings, strict=True)],
        "unknown": list(conclusion.limits),
    }


def _cause_json(cause: OverloadCause, findings: Sequence[str]) -> dict[str, object]:
    return {
        "cause": cause.cause,
        "isAPF": cause.is_apf,
        "severity": cause.severity,
        "priorityLevel": cause.levels[0] if cause.levels else None,
        "priorityLevels": list(cause.levels),
        "flowSchema": cause.schema,
        "user": cause.user,
        "verb": cause.verb,
        "resource": cause.resource,
        "message": cause.message,
        "since": cause.since,
        "evidence": list(cause.evidence),
        "actions": [{"text": action.text, "command": action.command} for action in cause.actions],
        "wouldNotHelp": list(cause.would_not_help),
        "notCertain": cause.unsure,
        "server": cause.server,
        "findings": list(findings),
        "url": CAUSE_URL.format(id=cause.cause),
    }


def group_findings(conclusion: Conclusion, states: Sequence[ServerState], report: Report) -> list[list[str]]:
    """Return, for each cause, the IDs of the rules whose findings it explains.

    A cause explains a finding about one of its levels or its FlowSchema, at the server of the cause.
    """
    servers = {
        source.name: state.server.last.sources[0].name
        for state in states
        for shot in state.server.snapshots
        for source in shot.sources
    }
    rules: dict[tuple[str, str], set[str]] = {}
    for finding in report.findings:
        if finding.object is not None and finding.file in servers:
            rules.setdefault((servers[finding.file], finding.object.name), set()).add(finding.rule)
    return [
        sorted({rule for name in (*cause.levels, cause.schema or "") for rule in rules.get((cause.server, name), ())})
        for cause in conclusion.causes
    ]
