"""Defines `apflint replay`, which shows the priority levels of the requests in an audit log."""

from __future__ import annotations

from typing import Annotated

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.options import argument
from apflint.cli.replay_answers import answer_question
from apflint.cli.replay_options import EngineOptions, LogOptions, ReportOptions, SeatOptions, parse_question

_LOG_HELP = "Audit logs: files, directories, patterns, s3://, gs://, az:// and https:// URLs, or - for standard input; also .gz and .zst."


@command(
    panel="Analyze",
    epilog=examples(
        ("who fills the priority levels", "apflint replay audit.log -f manifests/"),
        ("all rotated files, by user and verb", "apflint replay logs/ --by user,verb --top 20"),
        ("the last hour of a client", "apflint replay audit.log --since 1h --where user=alice"),
        ("what is different from the day before", "apflint replay logs/ -f manifests/ --baseline 24h"),
        ("the configuration of the running cluster", "apflint replay audit.log --live"),
        ("what a branch would have changed", "apflint replay audit.log -f manifests/ --compare git:main:manifests"),
        (
            "an hour of a log in object storage",
            "apflint replay s3://audit-logs/hourly/ --since 2026-11-22T05:00 --until 2026-11-22T06:00",
        ),
        (
            "a configuration that changed at 14:00",
            "apflint replay audit.log -f old.yaml -f 2026-03-01T14:00:00Z=new.yaml",
        ),
        ("an upgrade of Kubernetes", "apflint replay audit.log --kubernetes 1.33 --compare defaults:1.36"),
        ("a load to edit and to simulate", "apflint replay audit.log -f manifests/ --write-load load.yaml"),
        ("the priority level of each request", "zcat audit.log.gz | apflint replay - --each"),
    ),
)
def replay(
    logs: Annotated[list[str], argument(_LOG_HELP, metavar="LOG...", show_default=False)],
    log: LogOptions = LogOptions(),  # noqa: B008  # frozen values
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008
    seats: SeatOptions = SeatOptions(),  # noqa: B008
    engine: EngineOptions = EngineOptions(),  # noqa: B008
    report: ReportOptions = ReportOptions(),  # noqa: B008
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
) -> int:
    """Show which priority levels the requests in an audit log get.

    For each priority level: requests, rejections, waits, seats in use and
    users. The configuration consists of the manifests, or those of the only
    cluster of the settings, and of the built-in objects of the Kubernetes
    release.

    With --compare, exits with 1 if a request moves, or a priority level with
    requests has other limits or other seats in use.
    """
    question = parse_question(logs, log, seats, engine, report, color)
    return answer_question(question, sources, exit_zero=exit_zero)
