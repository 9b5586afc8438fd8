"""Shows reports on a terminal. Each report replaces the previous one on the screen, as in watch(1).

The escape sequences are from xterm (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html). Other terminals support them, too.
The module does not use rich.live: the import of rich takes longer than the work of this module, and rich would parse the colors
of the answer again.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from apflint.cli.error_reporting import format_note
from apflint.cli.progress import show_progress
from apflint.run import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.run import Answer

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Switch to the alternate screen, hide the cursor, and cut off long lines instead of wrapping them."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_TERMINATED = 128 + signal.SIGTERM


def format_time() -> str:
    """Return the current time in UTC, for the line above a report."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def watch(answers: Iterator[Answer]) -> int:
    """Show each answer on the terminal until the user presses Ctrl-C. Then print the last answer, and return its exit status.

    Raises KeyboardInterrupt if the user presses Ctrl-C before the first answer.
    """
    with show_progress("Reading the cluster"):
        last = next(answers)
    try:
        with _alternate_screen() as is_interrupted:
            _draw(last)
            for answer in answers:
                last = answer
                _draw(answer)
                if is_interrupted():
                    break
    except KeyboardInterrupt:
        pass
    return show(last)


@contextmanager
def _alternate_screen() -> Iterator[Callable[[], bool]]:
    """Show the alternate screen of the terminal, which has no history. Restore the screen at the end, even after an exception.

    Yield a function that returns whether the user has pressed Ctrl-C. The function is needed because Python ignores the
    KeyboardInterrupt if Ctrl-C is pressed during a finalizer or a callback of a weak reference, such as the callback of a
    thread pool.
    """
    pressed: list[int] = []

    def interrupt(number: int, _: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    handlers: dict[int, Callable[[int, object], None]] = {signal.SIGTERM: _terminate, signal.SIGINT: interrupt}
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    sys.stdout.write(_ENTER)
    try:
        yield lambda: bool(pressed)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _terminate(_number: int, _: object) -> None:
    raise SystemExit(_TERMINATED)


def _draw(answer: Answer) -> None:
    """Write an answer over the previous answer.

    The screen is not erased first, because erasing makes the screen flicker.
    """
    sys.stdout.write(arrange(answer, format_time(), os.get_terminal_size(sys.stdout.fileno()).lines))
    sys.stdout.flush()


def arrange(answer: Answer, time: str, height: int) -> str:
    """Return the text and the notes of an answer for a screen of `height` lines.

    If not all lines fit, the last line states the number of omitted lines.
    """
    notes = "".join(map(format_note, (*answer.notes, *answer.errors)))
    lines = [f"{time}   Ctrl-C stops apflint and prints the whole report", "", *f"{answer.text}{notes}".splitlines()]
    if len(lines) > height:
        kept = max(height - 1, 1)
        lines[kept:] = [f"... {len(lines) - kept} more lines"]
    return _HOME + "\n".join(f"{line}{_CLEAR_LINE}" for line in lines) + _CLEAR_BELOW
