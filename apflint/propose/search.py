"""Searches for the smallest change that meets the goals, and finds the reason for each number of this change.

The search simulates one part of a log. Reports use the other part, which the search does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.budgets import MAX_TRIALS, MAX_TRIED_REQUESTS
from apflint.named_tuple import NamedTuple
from apflint.propose.candidates import list_fields
from apflint.propose.changes import FlowSchemaFieldChange, NewFlowSchema, NewLevel, apply_changes, measure
from apflint.propose.effects import find_misses
from apflint.propose.trials import run_trial
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.propose.candidates import Candidate
    from apflint.propose.changes import Change
    from apflint.propose.effects import TrialGoals
    from apflint.propose.trials import LogPart, TrialOutcome


INTERRUPTED = "interrupted"
"""Value of `Searched.ended` if Ctrl-C ended the search."""


class Tried(NamedTuple):
    """A simulated candidate, with the goals that it misses."""

    candidate: Candidate
    misses: tuple[str, ...]
    """Goals that the candidate misses, as clauses. Empty if the candidate meets all goals."""


class Need(NamedTuple):
    """The reason for a change of a field: goals that the proposal misses without this change, or with a smaller one."""

    field: str
    change: str
    """The change that was tried instead, such as `without borrowingLimitPercent`."""
    misses: tuple[str, ...]


class Searched(NamedTuple):
    """The result of a search: the smallest candidate that meets the goals (or None), and what the search tried."""

    found: Candidate | None
    tried: tuple[Tried, ...]
    """Candidates that were simulated, in the order of the simulations, the smallest first."""
    needs: tuple[Need, ...]
    ended: str
    """Why the search ended before all candidates were tried, as a clause, or "" if all were tried."""


class Trials:
    """Simulates configurations with a part of a log, up to a maximum number of simulations.

    Before each simulation, `show` is called with a label, the number of finished simulations, and the maximum.
    """

    def __init__(
        self, part: LogPart, goals: TrialGoals, before: TrialOutcome, show: Callable[[str, int, int], object]
    ) -> None:
        self.part, self.goals, self.before = part, goals, before
        self._show = show
        self.number = 0
        self.maximum = max(1, min(MAX_TRIALS, MAX_TRIED_REQUESTS // max(1, part.survey.sent)))

    @property
    def is_exhausted(self) -> bool:
        """Whether the maximum number of simulations is reached."""
        return self.number >= self.maximum

    def find_misses(self, effective: Effective) -> tuple[str, ...]:
        """Simulate a configuration, and return the goals that it misses."""
        self.number += 1
        self._show(f"Trying change {self.number} of at most {self.maximum}", self.number - 1, self.maximum)
        return find_misses(self.goals, self.before, run_trial(self.part, effective))


def search(
    trials: Trials,
    candidates: Sequence[Candidate],
    reject: Callable[[Candidate], tuple[str, ...]],
    keep: Callable[[Candidate], tuple[str, ...]],
) -> Searched:
    """Search for the smallest candidate that meets the goals, and return the result of the search.

    `candidates` are tried in order, until one meets the goals in the simulation and nothing is against
    it. Then its values are removed or halved as far as the goals permit. `keep` and `reject` return the
    reasons against a candidate, as clauses. `keep` is called before the simulation, and `reject` is
    called after it. If no candidate is found, `Searched.found` is None. Ctrl-C ends the search.
    """
    tried: list[Tried] = []
    try:
        for candidate in candidates:
            if trials.is_exhausted:
                return Searched(None, tuple(tried), (), f"after {count_noun(trials.number, 'simulation')}, the maximum")
            misses = keep(candidate) or trials.find_misses(_get_after(candidate)) or reject(candidate)
            tried.append(Tried(candidate, misses))
            if not misses:
                reduced, needs = _reduce(trials, candidate, reject, keep)
                return Searched(reduced, tuple(tried), needs, "")
    except KeyboardInterrupt:
        best = next((entry.candidate for entry in reversed(tried) if not entry.misses), None)
        return Searched(best, tuple(tried), (), INTERRUPTED)
    return Searched(None, tuple(tried), (), "")


def _get_after(candidate: Candidate) -> Effective:
    assert candidate.after is not None, "list_candidates sets it"
    return candidate.after


def _reduce(
    trials: Trials,
    candidate: Candidate,
    reject: Callable[[Candidate], tuple[str, ...]],
    keep: Callable[[Candidate], tuple[str, ...]],
) -> tuple[Candidate, tuple[Need, ...]]:
    """Remove or halve the values of a candidate while it still meets the goals. Return the smaller candidate.

    The second value of the result has a `Need` for each remaining value. It contains the goals that
    the candidate misses without this value, or with half of the value.
    """
    needs: dict[str, Need] = {}
    pending = True
    while pending and not trials.is_exhausted:
        pending = False
        for field, variant in _list_variants(trials.part.replay.known, candidate):
            if f"{field}: {_describe_variant(field, candidate, variant)}" in needs:
                continue
            misses = keep(variant) or trials.find_misses(_get_after(variant)) or reject(variant)
            if not misses:
                candidate, pending = variant, True
                break
            change = _describe_variant(field, candidate, variant)
            needs[f"{field}: {change}"] = Need(field, change, misses)
    return candidate, tuple(needs.values())


def _list_variants(known: Effective, candidate: Candidate) -> Iterator[tuple[str, Candidate]]:
    """Yield (field, smaller candidate): without the changed value of this field, or with half of the value."""
    found = [
        (field, tuple(change if _is_same_object(change, old) else old for old in candidate.changes))
        for field, change in list_fields(candidate)
    ]
    for removed in candidate.changes:
        if isinstance(removed, LevelFieldChange | FlowSchemaFieldChange):
            found.insert(0, (removed.field, tuple(change for change in candidate.changes if change is not removed)))
    for field, changes in found:
        after = apply_changes(known, changes)
        isolation = None if candidate.isolation is None else candidate.isolation._replace(changes=changes)
        cost = measure(changes, known, after)
        yield field, candidate._replace(changes=changes, after=after, isolation=isolation, cost=cost)


def _is_same_object(change: Change, old: Change) -> bool:
    return type(change) is type(old) and change[0] == old[0] and (isinstance(change, NewLevel) or change[1] == old[1])


def _describe_variant(field: str, candidate: Candidate, variant: Candidate) -> str:
    if len(variant.changes) < len(candidate.changes):
        return f"without the change of {field}"
    for old, new in zip(candidate.changes, variant.changes, strict=True):
        if old != new:
            was, now = _get_value(old, field), _get_value(new, field)
            return f"without {field}" if now is None else f"with {now} instead of {was} for {field}"
    return f"without {field}"


def _get_value(change: Change, field: str) -> object:
    match change:
        case NewLevel():
            return change.shares if field == "shares" else change.borrowing_limit_percent
        case NewFlowSchema():
            return change.distinguisher_method
    return change.value
