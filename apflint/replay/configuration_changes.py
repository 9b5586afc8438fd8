"""Configurations that change while a log is written: each request is classified with the configuration in force at its arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.replay.classification import Assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.replay.classification import TupleClassifier
    from apflint.replay.loaded_log import Log

_UNUSED = Assignment("no user")
"""Placeholder for attribute tuples that have no requests under a version of the configuration."""


def assign_by_time(log: Log, classifiers: Sequence[TupleClassifier], times: Sequence[int]) -> list[Assignment]:
    """Assign each attribute tuple of the log once for each version of the configuration. Return all assignments.

    The function appends a copy of all tuples to `log.tuples` for each change. The tuples of version N
    follow those of version N-1, in the same order. Each request then refers to the tuple of the version
    that is in force when the request arrives. So each tuple has exactly one assignment, and the tables
    need no column for the version.

    `times` are the times of the changes in microseconds since 1970, in ascending order. `classifiers`
    contains the classifier before the first change, and then one classifier for each change.
    """
    number, database = len(log.tuples), log.database
    starts = [None, *times]
    assignments: list[Assignment] = []
    for version, (classifier, start, end) in enumerate(zip(classifiers, starts, [*times, None], strict=True)):
        conditions = [f"received >= {start:d}"] if start is not None else []
        conditions += [f"received < {end:d}"] if end is not None else []
        condition = " AND ".join(conditions)
        rows: list[Any] = database.query(f"SELECT DISTINCT tuple FROM request WHERE {condition}")
        used = {tuple_number for (tuple_number,) in rows}
        assignments += (
            classifier.assign(attributes) if position in used else _UNUSED
            for position, attributes in enumerate(log.tuples)
        )
        if version:
            database.query(f"UPDATE request SET tuple = tuple + {version * number} WHERE {condition}")
    log.tuples *= len(classifiers)
    return assignments
