"""Reports for `apflint limits --want`: the shares with which priority levels get the wanted seats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.diff.objects import compare_levels
from apflint.output.blocks import Bullets, Column, Command, Group, Prose, Table, Text
from apflint.output.configuration_line import report_configuration
from apflint.wording import pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.diff.objects import LevelChange
    from apflint.evaluate.limits import LevelLimits
    from apflint.output.blocks import Block, Cell, Tone
    from apflint.wanted_seats import ShareChange, WantedSeats

_FIGURES = {"Shares": "shares", "Nominal": "nominal", "Min": "min", "Attainable": "attainable"}
"""Columns of the table of levels: title, and the attribute of `LevelLimits` that the column shows."""


def wanted_seats_json(found: WantedSeats) -> dict[str, object]:
    """Return the fields that `limits --want` adds to the JSON of `limits`."""
    return {
        "wanted": [
            {
                "name": change.level.name,
                "seats": change.seats,
                "shares": change.after,
                "sharesBefore": change.before,
                "smallestShares": change.smallest,
                "field": change.field,
                "file": None if builtin.is_built_in(change.level.document) else change.level.document.source.name,
            }
            for change in found.changes
        ],
        "changes": levels_json(compare_levels(found.before, found.after)),
    }


def levels_json(changes: Sequence[LevelChange]) -> list[dict[str, object]]:
    """Return the seats of each level at one API server before and after a change.

    A value is None if the level does not exist.
    """

    def get(level: LevelLimits | None) -> dict[str, int | None] | None:
        if level is None:
            return None
        attainable = None if level.is_exempt else level.attainable
        return {"shares": level.shares, "nominal": level.nominal, "min": level.min, "attainable": attainable}

    return [{"name": change.name, "before": get(change.old), "after": get(change.new)} for change in changes]


def report_wanted_seats(found: WantedSeats, configuration: str, words: str) -> Iterator[Block]:
    """Yield the shares that each level needs, the seats of all levels before and after the change, and the changes to make.

    `words` are the options that name the configuration, for the suggested command.
    """
    limits = found.before
    share_sums = [sum(level.shares for level in side.levels) for side in (limits, found.after)]
    after = {level.name: level for level in found.after.levels}
    answers = [_describe_change(change, after[change.level.name]) for change in found.changes]
    scope = f"Kubernetes {limits.release.name}, {limits.server_concurrency:,} seats in one API server"
    yield Group([Prose(answers, "bold"), report_configuration(scope, configuration)])
    changed = [change for change in found.changes if change.after != change.before]
    if not changed:
        return
    before, now = share_sums
    formula = f"{limits.server_concurrency} x SHARES / {before} (after the change: SHARES / {now}), rounded up"
    yield tabulate_seats(compare_levels(found.before, found.after), [f"NOMINAL: the seats of the level, {formula}."])
    yield Group([Prose(["To change it:"]), Bullets([_describe_edit(change) for change in changed])])
    changes = (f"--set {change.level.name}.nominalConcurrencyShares={change.after}" for change in changed)
    arguments = " ".join(filter(None, ("LOAD", words, *changes)))
    yield Group([Prose(["To simulate it first:"]), Command("apflint simulate", arguments, 2)])


def tabulate_seats(changes: Sequence[LevelChange], notes: Sequence[str] = ()) -> Table:
    """Return a table with the shares and seats of each changed level before and after the change."""
    rows: list[tuple[Cell, ...]] = []
    for change in changes:
        if change.is_changed:
            cells = [_step(change, attribute) for attribute in _FIGURES.values()]
            tone: Tone = "good" if change.gain > 0 else "bad" if change.gain < 0 else ""
            gain = Text(f"{change.gain:+,}" if change.gain else "0", tone)
            rows.append((Text(change.name, "bold"), gain, *cells))
    columns = (Column("Priority level", "name"), Column("Change"), *map(Column, _FIGURES))
    meaning = "MIN: the seats that the level never lends. ATTAINABLE: the seats that it can reach while all other levels are idle."
    return Table(columns, rows, "Seats of each level", notes=(*notes, meaning))


def _step(change: LevelChange, attribute: str) -> str:
    """Return an attribute of a level as text: `98 -> 93` if it changes, or else `98`."""

    def get(level: LevelLimits | None) -> str:
        is_unlimited = level is None or (level.is_exempt and attribute == "attainable")
        return "-" if is_unlimited else f"{getattr(level, attribute):,}"

    before, after = get(change.old), get(change.new)
    return before if before == after else f"{before} -> {after}"


def _describe_change(change: ShareChange, after: LevelLimits) -> str:
    name, seats = quote(change.level.name), pluralize(change.seats, "seat")
    if change.after == change.before:
        return f"{name} already has at least {seats}: it has {change.before} shares, and needs only {change.smallest}."
    return (
        f"{name} needs {change.after} shares instead of {change.before} to have at least {seats}. It then has {after.nominal}."
        " No smaller number of shares suffices."
    )


def _describe_edit(change: ShareChange) -> str:
    document = change.level.document
    edit = f"{change.field} {change.before} -> {change.after}"
    if builtin.is_built_in(document):
        return (
            f"{quote(change.level.name)} is built in: {edit}, with the annotation {builtin.AUTOUPDATE}:"
            ' "false", because the API server restores the shares otherwise'
        )
    line = document.span(("spec", "limited", change.field)).line
    return f"{document.source.name}:{line}: {edit}"
