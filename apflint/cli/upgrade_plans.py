"""Prints the plan of `apflint migrate --plan`: the steps of an upgrade of Kubernetes over several minor releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.cli.exit_codes import ExitCode
from apflint.cli.progress import show_progress
from apflint.cli.repeated_options import repeat_seats, repeat_settings
from apflint.edit.file_content import decode
from apflint.edit.upgrade_plan import count_objects, plan_upgrade
from apflint.effective_configuration import Assumptions
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.output.upgrade_plan import TITLE, PlanWords, describe_sources, plan_json, report_plan
from apflint.run import Answer, run
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.output.console import Style
    from apflint.releases import Release
    from apflint.sources.input_types import InputRequest, Inputs


def show_plan(
    request: InputRequest,
    releases: Sequence[Release],
    output_format: Literal["text", "json", "markdown"],
    how: Style,
    *,
    exit_zero: bool,
) -> int:
    """Print the plan of an upgrade through `releases`. Return the exit status. Raises UserError for less than two releases."""
    if len(releases) < 2:
        raise UserError("--plan requires --range with the release of today and a later one, as in --range 1.25..1.33")

    def find_answer(inputs: Inputs) -> Answer:
        texts, errors = dict[str, str](), list[str]()
        for file in (inputs.files[name] for name in inputs.reported):
            try:
                text = decode(file.data)[0]
            except UnicodeDecodeError:
                errors.append(f"{file.name}: not a text file")
                continue
            if count_objects([text]):
                texts[file.name] = text
        with show_progress("Comparing"):
            steps = plan_upgrade(releases, texts, Assumptions(server_concurrency=request.settings.server_concurrency))
        words, settings = request.words or (".",), repeat_settings(request)
        files = (part for word in words for part in ("-f", word))
        commands = PlanWords((*words, *settings), (*files, *repeat_seats(request), *settings))
        sources = describe_sources(len(texts), count_objects(texts.values()))
        if output_format == "json":
            text = to_json(plan_json(steps, commands, sources), 2)
        else:
            text = render_report(TITLE, report_plan(steps, commands, sources), output_format, how)
        must_change = any(step.changes for step in steps) and not exit_zero
        return Answer(text, errors=tuple(errors), status=ExitCode.FINDINGS if must_change else ExitCode.OK)

    return run(request, find_answer)
