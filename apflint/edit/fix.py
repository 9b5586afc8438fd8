"""Mends findings: makes their fixes in the texts, and keeps only what a second check finds mended and no worse.

Nothing is written here: texts go in, and texts come out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.edit import apply, operations
from apflint.edit.attempt import Done, State, attempt
from apflint.edit.consequences import identity, places
from apflint.edit.origins import told
from apflint.edit.portions import Portions
from apflint.edit.proof import position, prove
from apflint.edit.retries import Retries
from apflint.edit.veils import hides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.edit.attempt import Judge
    from apflint.finding import Edit, Finding, Report


MAX_FAILED_ATTEMPTS = 32
MAX_FAILED_BYTES = 1024 * 1024
"""How many attempts may fail, and how much text they may read, where it is not known which fix is the reason.

Half as many fixes are tried each time, so few bad ones need few attempts. Thousands of bad ones are made to exhaust somebody.
"""


class Refusal(NamedTuple):
    """A fix that was not made, and why: a sentence without its end."""

    finding: Finding
    reason: str


class Mending(NamedTuple):
    """What became of the inputs."""

    inputs: Mapping[str, bytes]
    """All of them, by name, mended or not."""
    made: tuple[Finding, ...]
    """What was mended, in the order it was done, with lines of the inputs as they were; columns are those at that time."""
    refused: tuple[Refusal, ...]
    """What was not, with lines of the inputs as they were."""
    report: Report
    """What is found in the inputs as they are now."""


def edits(finding: Finding) -> tuple[Edit, ...]:
    """The edits of its file that make the fix of a finding, alone. ValueError where the text does not let us."""
    if finding.fix is None:
        return ()
    if finding.document is None:
        return finding.fix.edits
    document, asked = finding.document, list(finding.fix.operations)
    made = (*finding.fix.edits, *operations.edits(document, asked))
    if "&" in document.source.text:  # what has an anchor may be used in other places, which would change as well
        prove(document.source, apply(document.source.text, made), {position(document): asked}, more=False)
    return made


def mend(inputs: Mapping[str, bytes], judge: Judge, *, unsafe: bool = False, first: Report | None = None) -> Mending:
    """Makes the fixes of what `judge` finds in the inputs, safe ones only unless `unsafe`.

    `first` is what `judge` says of the inputs, where that is known. As many are made at once as go well together. Those
    that do not are tried in ever smaller portions, and refused if they do not go well alone; all files go through that
    at the same time, so that one bad fix in each of 300 files takes no more calls of `judge` than in one.
    """
    now = State(inputs, judge(inputs) if first is None else first, {})
    made: list[Finding] = []
    refused: dict[tuple[Any, ...], Refusal] = {}
    retries, portions = Retries(), Portions()
    seen = set(map(identity, now.report.findings))

    def wanted(finding: Finding) -> bool:
        return finding.fix is not None and (finding.fix.safe or unsafe) and identity(finding) not in refused

    # Each turn mends, refuses, or halves a portion. The bounds are only against what nobody has thought of: fixes that
    # undo each other.
    turns = rounds = failed = 0
    size = sum(map(len, inputs.values()))
    while turns <= 3 * len(seen) + 3 and rounds <= len(seen):
        turns += 1
        batch = portions.of(_together([found for found in now.report.findings if wanted(found)]))
        if not batch:
            # What was refused before others were made may go well by now: fixing twice would make it then.
            again = [key for key in refused if retries.worthwhile(key)]
            if not again:
                break
            for key in again:
                del refused[key]
            turns, rounds, portions = 0, rounds + 1, Portions()
            continue
        outcome = attempt(now, batch, judge, wanted)
        if isinstance(outcome, Done):
            now = outcome.state
            made += outcome.made
            seen.update(map(identity, now.report.findings))
            retries.made(outcome.made)
            portions.grow(batch)
            continue
        for found, reason in outcome.guilty:
            refused[identity(found)] = Refusal(told(found, now.origins), reason)
            retries.refused(identity(found), places(found)[-1])
        if outcome.guilty:
            continue
        failed += 1
        if failed > MAX_FAILED_ATTEMPTS and failed * size > MAX_FAILED_BYTES:
            reason = f"apflint stops after {failed} attempts to tell good fixes from bad ones: {outcome.reason}"
            left_over = list(filter(wanted, now.report.findings))
            refused |= {identity(found): Refusal(told(found, now.origins), reason) for found in left_over}
            break
        for found in portions.shrink(batch, outcome.reasons, outcome.later):
            place = next((place for place in reversed(places(found)) if place in outcome.reasons), ())
            refused[identity(found)] = Refusal(told(found, now.origins), outcome.reasons.get(place, outcome.reason))
            retries.refused(identity(found), () if place in outcome.afar else place)
    still = set(map(identity, now.report.findings))
    left = tuple(refusal for key, refusal in refused.items() if key in still)
    return Mending(now.inputs, tuple(made), left, now.report)


def _together(findings: list[Finding]) -> list[Finding]:
    """Of several findings those to be mended first, if there are such.

    What the server rejects comes before the rest: it hides other findings, and those may come to light then, but must
    not come from other fixes made at the same time.
    """
    return [found for found in findings if hides(found)] or findings
