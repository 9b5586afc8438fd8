"""Progress on standard error, for runs that take longer than a second on a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import Event

T = TypeVar("T")

_PATIENCE = 1.0  # seconds


@contextmanager
def working(label: Callable[[], str]) -> Iterator[Callable[[], None]]:
    """Show what a run is doing, from one second after the start of the work on, if standard error is a terminal.

    Yields the function that starts the work; before that nothing is shown. The line is erased at the end.
    """
    if not (sys.stderr and sys.stderr.isatty()):
        yield lambda: None
        return
    from threading import Event, Thread

    done = Event()
    thread = Thread(target=_show, args=(label, done), daemon=True)

    def start() -> None:
        if not thread.is_alive() and not done.is_set():
            thread.start()

    try:
        yield start
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def _show(label: Callable[[], str], done: Event) -> None:
    """Write the label and the seconds, once a second, until the work is done."""
    started = time.monotonic()
    shown = False
    while not done.wait(_PATIENCE):
        sys.stderr.write(f"\r{label()} ({time.monotonic() - started:.0f} s) ...")
        sys.stderr.flush()
        shown = True
    if shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def followed(items: Iterable[T], action: Callable[[], None]) -> Iterator[T]:
    """Yield the items, then call `action`."""
    yield from items
    action()


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
