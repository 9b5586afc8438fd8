"""Reports the back-test of a simulation of an audit log: the figures of the log and of the simulation, and their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import Bullets, Prose
from apflint.simulate.back_test import REJECTED_SHARE, WAIT_FACTOR, WAIT_TOLERANCE, are_alike
from apflint.simulate.load import SECOND
from apflint.simulate.verdict_sentences import format_time
from apflint.wording import count_noun, join_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.blocks import Block
    from apflint.simulate.back_test import LevelBackTest, LevelFigures
    from apflint.simulate.logged_simulation import LoggedRun, LogSimulation
    from apflint.simulate.statistics import LevelResult

_MAX_LEVELS = 5
_MIN_SHARE = 0.01
"""Minimum effect of the assumption that some requests are retries, for showing the rejections of a level both with and
without the assumption. The effect is the difference of the rejections, as a fraction of the requests of the level."""


def report_back_test(found: LogSimulation) -> Iterator[Block]:
    """Yield the first blocks of the report: the back-test, and warnings about uncertain figures."""
    test = found.back_test
    if test.is_usable:
        yield Prose([_compare_totals(found)], "bold")
    else:
        yield Prose([f"Unreliable: this simulation does not reproduce the log. {_compare_totals(found)}"], "error")
        different = [level for level in test.levels if not level.is_usable]
        yield Bullets([*map(_compare_level, different[:_MAX_LEVELS]), *test.reasons])
    if warnings := list(list_warnings(found)):
        yield Bullets(warnings)


def list_warnings(found: LogSimulation) -> Iterator[str]:
    """Yield sentences about figures that are uncertain because the log lacks information.

    The figures are those of the last simulated configuration.
    """
    yield from (f"Not predicted: {reason}" for reason in found.runs[-1].unpredictable)
    retries = sum(level.retries for level in found.survey.levels)
    ranges = [
        _describe_range(level, other) for level, other in _pair_levels(found.runs[-1]) if not _agree(level, other)
    ]
    if ranges:
        merged = found.assumptions.merges
        yield (
            f"{count_noun(retries, 'request')} may be retries of rejected requests. The figures are those of a simulation"
            f" {'with' if merged else 'without'} this assumption, because they reproduce the log best."
            f" {'Without' if merged else 'With'} this assumption: {join_some(ranges, _MAX_LEVELS)}."
        )


def _compare_totals(found: LogSimulation) -> str:
    test = found.back_test
    logged, simulated = test.logged, test.simulated
    busiest = max(test.levels, key=lambda level: (level.logged.wait_p99 or 0, level.logged.rejected), default=None)
    waits = "no wait over 500 ms at the 99th percentile", "the same"
    if logged.wait_p99 is not None and busiest is not None:
        waits = f"a P99 wait of {format_time(logged.wait_p99)} in {busiest.name}", _format_wait(busiest.simulated)
    elif simulated.wait_p99 is not None and simulated.wait_p99 > SECOND // 2:
        waits = waits[0], f"a P99 wait of {format_time(simulated.wait_p99)}"
    return (
        f"The log has {count_noun(logged.rejected, 'rejection')} and {waits[0]}; this simulation of the same configuration has"
        f" {simulated.rejected:,} and {waits[1]}."
    )


def _compare_level(level: LevelBackTest) -> str:
    logged, simulated = level.logged, level.simulated
    return (
        f"{level.name}: of {count_noun(level.requests, 'request')}, {count_noun(logged.rejected, 'rejection')} and a P99 wait of {_format_wait(logged)} in the log,"
        f" and {count_noun(simulated.rejected, 'rejection')} and a P99 wait of {_format_wait(simulated)} in the simulation"
    )


def _format_wait(figures: LevelFigures) -> str:
    return "at most 500 ms" if figures.wait_p99 is None else format_time(figures.wait_p99)


def _pair_levels(run: LoggedRun) -> Iterator[tuple[LevelResult, LevelResult]]:
    """Yield (result of `run`, result of the simulation with the opposite assumption about retries) for each level.

    Yield nothing if there is no simulation with the opposite assumption.
    """
    if run.other is not None:
        yield from zip(run.result.levels, run.other.levels, strict=True)


def _agree(level: LevelResult, other: LevelResult) -> bool:
    rejected = abs(sum(level.rejected.values()) - sum(other.rejected.values()))
    return rejected <= _MIN_SHARE * max(level.requests, other.requests) and are_alike(_p99(level), _p99(other))


def _p99(level: LevelResult) -> int:
    return 0 if level.waits is None else level.waits.p99


def _describe_range(level: LevelResult, other: LevelResult) -> str:
    parts = [f"{sum(other.rejected.values()):,} rejections instead of {sum(level.rejected.values()):,}"]
    if not are_alike(_p99(level), _p99(other)):
        parts.append(f"a P99 wait of {format_time(_p99(other))} instead of {format_time(_p99(level))}")
    return f"{level.name} has {' and '.join(parts)}"


def back_test_json(found: LogSimulation) -> dict[str, object]:
    """Return the JSON fields that only a simulation of a log has. Waits are in seconds."""
    test = found.back_test
    return {
        "backtest": {
            "usable": test.is_usable,
            "tolerance": {
                "rejected": REJECTED_SHARE,
                "waitFactor": WAIT_FACTOR,
                "wait": WAIT_TOLERANCE / SECOND,
            },
            "logged": _figures_json(test.logged),
            "simulated": _figures_json(test.simulated),
            "levels": [
                {
                    "name": level.name,
                    "requests": level.requests,
                    "logged": _figures_json(level.logged),
                    "simulated": _figures_json(level.simulated),
                    "usable": level.is_usable,
                }
                for level in test.levels
            ],
            "reasons": list(test.reasons),
        },
        "warnings": list(list_warnings(found)),
        "ranges": [
            {
                "name": level.name,
                "rejected": sorted((sum(level.rejected.values()), sum(other.rejected.values()))),
                "waitP99": [wait / SECOND for wait in sorted((_p99(level), _p99(other)))],
            }
            for level, other in _pair_levels(found.runs[-1])
            if not _agree(level, other)
        ],
    }


def _figures_json(figures: LevelFigures) -> dict[str, object]:
    return {
        "rejected": figures.rejected,
        "waitP99": None if figures.wait_p99 is None else figures.wait_p99 / SECOND,
    }
