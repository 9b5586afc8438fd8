"""Progress on standard error, for runs that take longer than a second on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")

_PATIENCE = 1.0  # seconds


def watched(items: Sequence[T]) -> Iterator[T]:
    """The items, one by one; from the second second on with a bar, where standard error is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    started = time.monotonic()
    rest = iter(items)
    done = 0
    for item in rest:
        yield item
        done += 1
        if time.monotonic() - started > _PATIENCE:
            break
    if done < len(items):
        yield from _with_bar(rest, done, len(items))


def _with_bar(rest: Iterator[T], done: int, total: int) -> Iterator[T]:
    from rich.console import Console  # only slow runs see it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("files", total=total, completed=done)
        for item in rest:
            yield item
            bar.advance(task)
