"""The report of `simulate --search`: the largest rate of a client at which no client is rejected or waits too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.output.blocks import HTML, Column, Heading, Only, Prose, Table, Text
from apflint.output.configuration_line import report_configuration
from apflint.output.json_text import SCHEMA
from apflint.simulate.load import SECOND
from apflint.simulate.verdict_sentences import format_time
from apflint.wording import join_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.blocks import Block
    from apflint.simulate.rate_search import RateSearch, Trial

RATE_TITLE = "Search for the largest rate"
_MAX_FAILURES = 3


class RateReport(NamedTuple):
    """A search for the largest rate of a client."""

    client: str
    search: RateSearch
    factor: float
    """Value of `--scale` for the client that corresponds to the factor 1 in the search."""
    rate: float
    """Requests per second that the client sends if the factor in the search is 1."""
    max_wait: int
    """Longest permitted wait of a client in nanoseconds."""
    configuration: str
    assumptions: tuple[str, ...] = ()
    """Sentences about assumptions. If one of them is wrong, the answer may be wrong."""


def report_rate(report: RateReport, load: str) -> Iterator[Block]:
    """Yield the largest rate at which no client is rejected or waits too long, and a table of all simulations."""
    yield Only(HTML, [Heading(RATE_TITLE, 1)])
    if report.assumptions:
        yield Prose(report.assumptions, "warning")
    yield Prose(list(_answer(report)), "bold")
    yield report_configuration(f"Load: {load}", report.configuration)
    rows = [
        (
            Text(_format_rate(report, trial)),
            _format_factor(report, trial),
            Text(_describe(trial), "" if trial.works else "error"),
        )
        for trial in report.search.trials
    ]
    yield Table((Column("Rate"), Column("Factor"), Column("Result", "text")), rows)


def _answer(report: RateReport) -> Iterator[str]:
    client, (_, best, above) = report.client, report.search
    limit = f"rejected or waits longer than {format_time(report.max_wait)}"
    if best is None:
        yield f"Even without {client}, other clients are {limit.replace('waits', 'wait')}: no rate of {client} changes that."
        yield f"{_describe(report.search.trials[0])}."
        return
    if not best.factor:
        yield f"Every tried rate of {client} is too high, even the lowest: {_format_rate(report, report.search.trials[1])}."
    else:
        option = f"--scale {client}={_format_factor(report, best)}"
        yield f"{client} can send {_format_rate(report, best)} ({option}): no client is {limit}."
    if above is None:
        yield "No larger rate was tried, because the search ends at this rate."
    else:
        yield f"At {_format_rate(report, above)}: {_describe(above)}."


def _describe(trial: Trial) -> str:
    if not trial.is_possible:
        return "too many requests to simulate"
    return join_some(trial.failures, _MAX_FAILURES) if trial.failures else "works"


def _format_rate(report: RateReport, trial: Trial) -> str:
    rate = trial.factor * report.rate
    if rate >= 1 or not rate:
        return f"{rate:,.3g}/s" if rate < 1000 else f"{rate:,.0f}/s"
    return f"{rate * 60:.3g}/m" if rate * 60 >= 1 else f"{rate * 3600:.3g}/h"


def _format_factor(report: RateReport, trial: Trial) -> str:
    return f"{trial.factor * report.factor:g}"


def rate_json(report: RateReport, load: str) -> dict[str, object]:
    """Return the object that `simulate --search --format json` prints. Rates are requests per second."""
    search = report.search
    return {
        "schema": SCHEMA,
        "configuration": report.configuration,
        "load": load,
        "assumptions": list(report.assumptions),
        "client": report.client,
        "maxWait": report.max_wait / SECOND,
        "best": None if search.best is None else _trial_json(report, search.best),
        "above": None if search.above is None else _trial_json(report, search.above),
        "trials": [_trial_json(report, trial) for trial in search.trials],
    }


def _trial_json(report: RateReport, trial: Trial) -> dict[str, object]:
    return {
        "factor": trial.factor * report.factor,
        "rate": trial.factor * report.rate,
        "works": trial.works,
        "failures": list(trial.failures) if trial.is_possible else None,
    }
