"""The command `apflint propose`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.exit_codes import ExitCode
from apflint.cli.observed_server import read_observed_servers, use_seats_of_server
from apflint.cli.options import OUTPUT, argument, option, parse_integer
from apflint.cli.terminal import style
from apflint.output.configuration_line import name_configuration
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.run import Answer, analyze
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.cli.observed_server import ObservedServers
    from apflint.sources.effective_configurations import EffectiveConfiguration

PROPOSAL, EVIDENCE = "Proposal", "Evidence"
_LOGS_HELP = "Audit logs of all API servers for a period with an incident: files, directories, patterns, or - for standard input."


@command(
    panel="Analyze",
    epilog=examples(
        (
            "a separate level for a team, in a new file",
            "apflint propose --isolate group:analytics --seats 50 -f manifests/ --write manifests/analytics.yaml",
        ),
        (
            "a separate level for a team and its jobs, with the policy test and alerts",
            "apflint propose --isolate group:analytics --isolate 'serviceaccount:analytics/*' --seats 50 -o proposal",
        ),
        (
            "a change that would have prevented the incident in the logs",
            "apflint propose logs/ -f manifests/ --metrics metrics-1.txt --metrics metrics.txt -o proposal",
        ),
        (
            "a change that protects a level, and a group whose requests may wait for at most 1 s",
            "apflint propose audit.log -f manifests/ --protect leader-election --protect group:tenants=1s",
        ),
        (
            "a comment for a pull request",
            "apflint propose --isolate group:analytics --seats 50 -f manifests/ --format markdown",
        ),
    ),
)
def propose(
    logs: Annotated[list[str] | None, argument(_LOGS_HELP, metavar="[LOG]...", show_default=False)] = None,
    isolate: Annotated[
        list[str] | None,
        option(
            PROPOSAL,
            "Client to move to a new priority level: user:NAME, group:NAME, serviceaccount:NAMESPACE/NAME, or"
            " serviceaccount:NAMESPACE/*; repeatable: all named clients share the new level.",
            "--isolate",
            metavar="SUBJECT",
        ),
    ] = None,
    seats: Annotated[
        int | None,
        option(
            PROPOSAL, "Nominal seats of the level in each API server.", "--seats", metavar="N", parser=parse_integer
        ),
    ] = None,
    servers: Annotated[
        int | None,
        option(
            PROPOSAL,
            "Number of API servers, to show the seats in all of them, too.",
            "--servers",
            metavar="N",
            parser=parse_integer,
            show_default="those in --metrics",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        option(
            EVIDENCE,
            "Metrics and debug dumps of all API servers, with logs from before and during the incident; repeatable.",
            "--metrics",
            metavar="FILE",
        ),
    ] = None,
    objects: Annotated[
        list[str] | None,
        option(
            EVIDENCE,
            "With logs: number of objects of a resource and their average size, as in pods=5000:4000; repeatable.",
            metavar="RESOURCE=COUNT[:BYTES]",
        ),
    ] = None,
    protect: Annotated[
        list[str] | None,
        option(
            EVIDENCE,
            "With logs: client or priority level that must not be rejected, and must not wait for longer than WAIT at the 99th percentile, such as group:tenants=1s; repeatable.",
            "--protect",
            metavar="SUBJECT|LEVEL[=WAIT]",
        ),
    ] = None,
    may_suffer: Annotated[
        list[str] | None,
        option(
            EVIDENCE,
            "With logs: client whose requests may wait longer or be rejected more often; repeatable.",
            "--may-suffer",
            metavar="SUBJECT",
        ),
    ] = None,
    max_objects: Annotated[
        int | None,
        option(
            EVIDENCE,
            "With logs: maximum number of new objects.",
            "--max-objects",
            metavar="N",
            parser=parse_integer,
        ),
    ] = None,
    since: Annotated[
        str | None,
        option(
            EVIDENCE,
            "With logs: choose an incident that ends after this time: 2h is 2 hours before the end of the log; or a time of RFC 3339.",
            metavar="TIME",
        ),
    ] = None,
    until: Annotated[
        str | None, option(EVIDENCE, "With logs: choose an incident that begins before this time.", metavar="TIME")
    ] = None,
    goals: Annotated[
        str | None,
        option(
            PROPOSAL,
            "File with goals. Each key stands for an option, such as maySuffer for --may-suffer.",
            metavar="FILE",
        ),
    ] = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    write: Annotated[
        str | None, option(OUTPUT, "Write the new objects to this new file.", "--write", metavar="FILE")
    ] = None,
    output_dir: Annotated[
        str | None,
        option(
            OUTPUT,
            "Write the new objects, their policy test, and alerts to new files in this directory.",
            "--output-dir",
            "-o",
            metavar="DIR",
        ),
    ] = None,
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format.", "--format")
    ] = "text",
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
) -> int:
    """Propose a level for a client, or a change that would have prevented an incident.

    With --isolate, proofs for all requests show that exactly the requests of the
    client move, and no requests of system components.

    With audit logs, the proposal is the smallest change that meets the goals in a
    simulation. The search uses one part of the incident, and the report shows the
    effects on the other part. Without --protect, all clients except the cause are
    protected. If seats are not the cause, there is no proposal.

    Seats are those of each API server. With --servers, or with the metrics of several
    servers, the answer also has the seats of all servers.

    Nothing is applied. Exits with 1 if there is no proposal, and with 2 if the
    simulation does not reproduce the log.
    """
    parsed = None
    if goals is not None:
        from apflint.cli.goals_files import print_mistakes, read_goals

        options.reject_combinations({"--goals": goals}, {"--isolate": isolate, "--seats": seats is not None})
        parsed = read_goals(goals)
        if print_mistakes(parsed, color):
            return ExitCode.ERROR
        isolate, seats = list(parsed.isolate), parsed.seats
    if logs:
        options.reject_combinations(
            {"logs": logs},
            {"--isolate": isolate, "--seats": seats is not None, "--servers": servers is not None},
        )
        options.reject_combinations({"--write": write}, {"--output-dir": output_dir})
        from apflint.cli.log_proposals import LogRequest, propose_change
        from apflint.replay.filters import Filter, check_period, parse_moment

        chosen = Filter((), parse_moment("--since", since), parse_moment("--until", until))
        check_period(chosen.since, chosen.until)

        wanted = LogRequest(
            *(logs, metrics or [], objects or [], protect or [], may_suffer or [], max_objects, write, output_dir),
            *(parsed, goals, color, chosen),
        )
        return propose_change(wanted, sources.select(), output_format, style(color), exit_zero=exit_zero)
    if parsed is not None and (parsed.protect or parsed.may_suffer or parsed.max_objects is not None):
        raise UserError(f"{goals}: protect, maySuffer and maxObjects require audit logs")
    _reject_without_logs(
        {
            "--since": since is not None,
            "--until": until is not None,
            "--objects": objects,
            "--protect": protect,
            "--may-suffer": may_suffer,
            "--max-objects": max_objects is not None,
        }
    )
    if not isolate or seats is None:
        raise UserError("name audit logs, or clients and their seats, as in --isolate group:analytics --seats 50")
    options.reject_combinations({"--write": write}, {"--output-dir": output_dir})
    observed = read_observed_servers(tuple(metrics or ()), None)
    request = use_seats_of_server(sources.select(), observed)
    servers = _count_servers(servers, observed)

    def find_answer(configuration: EffectiveConfiguration) -> Answer:
        from apflint.cli.proposal_files import ProposalPlace
        from apflint.output import proposal as output
        from apflint.propose.goals import Isolation, parse_subject
        from apflint.propose.isolation import NoProposal
        from apflint.propose.proposal import build_proposal

        goal = Isolation(tuple(dict.fromkeys(map(parse_subject, isolate))), seats)
        place = ProposalPlace(request, configuration, write, output_dir)
        line = shlex.join(("apflint", "propose", *(f"--isolate={text}" for text in isolate), f"--seats={seats}"))
        found = build_proposal(configuration.effective, goal, line, place.list_manifests, configuration.cluster)
        if isinstance(found, NoProposal):
            value = output.no_proposal_json(goal, found)
            blocks = output.report_no_proposal(found, configuration.description)
        else:
            found = place.mark_assumption(found)
            files = place.write_files(found)
            value = output.proposal_json(found, files, servers)
            blocks = output.report_proposal(found, files, configuration.description, servers)
        if output_format == "json":
            text = to_json(name_configuration(value, configuration.description), 2)
        else:
            text = render_report(output.TITLE, blocks, output_format, style(color))
        is_found = exit_zero or not isinstance(found, NoProposal)
        return Answer(text, status=ExitCode.OK if is_found else ExitCode.FINDINGS)

    return analyze(request, find_answer)


def _count_servers(servers: int | None, observed: ObservedServers | None) -> int | None:
    """Return the number of API servers: that of `--servers` (`servers`), or of the observed ones, or None if unknown."""
    if servers is not None and servers < 1:
        raise UserError("--servers: a cluster has at least 1 API server")
    return servers if observed is None or servers is not None else len(observed.states)


def _reject_without_logs(given: Mapping[str, object]) -> None:
    """Raise UserError if an option is given that requires audit logs. Options that are not given have a false value."""
    for name, value in given.items():
        if value:
            raise UserError(f"{name} requires audit logs")
