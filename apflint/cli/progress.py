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

DELAY_SECONDS = 1.0


@contextmanager
def show_progress(label: Callable[[], str]) -> Iterator[Callable[[], None]]:
    """Show what a run is doing, starting one second after the start of the work, if standard error is a terminal.

    Yields the function that starts the work; nothing is shown before. The line is erased at the end.
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
    while not done.wait(DELAY_SECONDS):
        sys.stderr.write(f"\r{label()} ({time.monotonic() - started:.0f} s) ...")
        sys.stderr.flush()
        shown = True
    if shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def track_reading(files: Sequence[T]) -> Iterator[T]:
    """Yield the files, and show how many are read."""
    read = 0
    with show_progress(lambda: f"Reading file {read + 1} of {len(files)}") as start:
        start()
        for read, file in enumerate(files):  # noqa: B007  # the label shows the number
            yield file


def call_at_end(items: Iterable[T], action: Callable[[], None]) -> Iterator[T]:
    """Yield the items, then call `action`."""
    yield from items
    action()
