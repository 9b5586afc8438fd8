"""The command `apflint propose`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import OUTPUT, option, parse_integer
from apflint.cli.terminal import style
from apflint.output.configuration_line import name_configuration
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.run import Answer, analyze
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.sources.effective_configurations import EffectiveConfiguration

PROPOSAL = "Proposal"


@command(
    panel="Analyze",
    epilog=examples(
        (
            "a separate level for a team, in a new file",
            "apflint propose --isolate group:analytics --seats 50 -f manifests/ --write manifests/analytics.yaml",
        ),
        (
            "the same for a team and its jobs, with the policy test",
            "apflint propose --isolate group:analytics --isolate 'serviceaccount:analytics/*' --seats 50 -o proposal",
        ),
        (
            "a comment for a pull request",
            "apflint propose --isolate group:analytics --seats 50 -f manifests/ --format markdown",
        ),
    ),
)
def propose(
    isolate: Annotated[
        list[str] | None,
        option(
            PROPOSAL,
            "Client that gets its own priority level: user:NAME, group:NAME, serviceaccount:NAMESPACE/NAME, or"
            " serviceaccount:NAMESPACE/*; repeatable, for one level.",
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
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    write: Annotated[
        str | None, option(OUTPUT, "Write the new objects to this new file.", "--write", metavar="FILE")
    ] = None,
    output_dir: Annotated[
        str | None,
        option(
            OUTPUT,
            "Write the new objects and their policy test to new files in this directory.",
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
    """Propose a FlowSchema and a priority level for a client, with proofs.

    Proven for all requests: exactly those of the client move, and none of a
    system component. The answer shows which levels give the seats, what
    `apflint check` finds, and how to apply and roll back the proposal.
    It is never applied.

    Exits with 1 if there is no proposal, and says why.
    """
    if not isolate or seats is None:
        raise UserError("name the clients and their seats, as in --isolate group:analytics --seats 50")
    options.reject_combinations({"--write": write}, {"--output-dir": output_dir})
    request = sources.select()

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
            files = place.write_files(found)
            value = output.proposal_json(found, files)
            blocks = output.report_proposal(found, files, configuration.description)
        if output_format == "json":
            text = to_json(name_configuration(value, configuration.description), 2)
        else:
            text = render_report(output.TITLE, blocks, output_format, style(color))
        is_found = exit_zero or not isinstance(found, NoProposal)
        return Answer(text, status=ExitCode.OK if is_found else ExitCode.FINDINGS)

    return analyze(request, find_answer)
