"""Shows progress on standard error, for runs that take longer than a second on a terminal."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Event

T = TypeVar("T")

DELAY_SECONDS = 1.0
"""Seconds from the start until progress is shown, and seconds between two updates."""


_DEFAULT_WIDTH = 80
MIN_ESTIMATE_SECONDS = 2.0
"""Seconds from the start of an activity until the remaining time is estimated."""


class Progress:
    """The progress of a run for the terminal: what apflint does now and, if known, the finished percentage."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._done = self._total = 0.0
        self._is_limit = False
        self._started = time.monotonic()

    @property
    def label(self) -> str:
        """The label of the current activity."""
        return self._label

    @label.setter
    def label(self, label: str) -> None:
        """Begin another activity, for which no percentage is shown."""
        self._label, self._total = label, 0.0

    def advance(self, label: str, done: float, total: float, *, is_limit: bool = False) -> None:
        """Show the label, the percentage, and the estimated remaining time. `done` and `total` have the same unit.

        If `is_limit` is true, the activity may end before `total` is reached, and the remaining time is a maximum.

        A new activity begins if `total` differs from the previous call, or if `done` is less than in the previous call.
        """
        if total != self._total or done < self._done:
            self._started = time.monotonic()
        self._label, self._done, self._total, self._is_limit = label, done, total, is_limit

    def count_bytes(self, total: int) -> Callable[[int], None]:
        """Return a function that shows how much was read. It takes the number of bytes read since its previous call.

        `total` is the number of bytes to read, or 0 if it is unknown.
        """
        done = 0

        def show(size: int) -> None:
            nonlocal done
            done += size
            if done <= total:
                self.advance(f"Read {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", done, total)
            else:
                self.label = f"Read {done / 1e6:,.0f} MB"

        return show

    def track(self, files: Sequence[T]) -> Iterator[T]:
        """Yield the files, and show the number of the current file in the label. At the end, set the label to `Analyzing`."""
        for number, file in enumerate(files, 1):
            self.advance(f"Reading file {number:,} of {len(files):,}", number - 1, len(files))
            yield file
        self.label = "Analyzing"

    def describe(self) -> str:
        """Return the label. If the percentage and the estimated remaining time are known, append them."""
        if not 0 < self._done <= self._total:
            return self._label
        share, seconds = self._done / self._total, time.monotonic() - self._started
        if seconds < MIN_ESTIMATE_SECONDS:
            return f"{self._label}, {share:.0%}"
        from apflint.wording import format_duration  # imported on demand: short runs show no progress

        left = max(1, round(seconds * (1 - share) / share))
        word = "at most" if self._is_limit else "about"
        return f"{self._label}, {share:.0%}, {word} {format_duration(left * 1e6)} left"


@contextmanager
def show_progress(label: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a label and the elapsed time on standard error, if the body of the `with` statement takes over a second.

    The line is erased at the end. Nothing is shown if `quiet` is true, or if standard error is not a
    terminal that can erase a line. The body of the `with` statement may change the label and the
    progress by means of the `Progress` object that it gets.
    """
    progress = Progress(label)
    if quiet or not (sys.stderr and sys.stderr.isatty()) or os.environ.get("TERM") == "dumb":
        yield progress
        return
    from threading import Event, Thread

    done = Event()
    thread = Thread(target=_show, args=(progress, done), daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        done.set()
        thread.join()


def _show(progress: Progress, done: Event) -> None:
    """Write the activity and the elapsed seconds, once a second, until `done` is set."""
    started = time.monotonic()
    end = ""
    while not done.wait(DELAY_SECONDS):
        line = f"{progress.describe()} ({time.monotonic() - started:.0f} s) ..."
        # The line is cut to the width of the terminal, because a wrapped line could not be erased.
        sys.stderr.write(f"\r\x1b[K{line[: _find_width() - 1]}")
        sys.stderr.flush()
        end = "\r\x1b[K"
    sys.stderr.write(end)
    sys.stderr.flush()


def _find_width() -> int:
    from apflint.cli.terminal import style  # imported on demand: short runs show no progress

    return style("never", sys.stderr).width or _DEFAULT_WIDTH
