"""Controls when Ctrl-C takes effect: later in code that must not be interrupted, and immediately in slow C code."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _can_handle() -> bool:
    """Return whether this is the main thread and Ctrl-C raises KeyboardInterrupt. Other threads get no Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Delay Ctrl-C: if the user presses it inside the block, raise KeyboardInterrupt at the end of the block."""
    if not _can_handle():
        yield
        return
    is_interrupted = False

    def remember(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_interrupted:
        raise KeyboardInterrupt


@contextmanager
def call_on_interrupt(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` in another thread if the user presses Ctrl-C inside the block.

    Python runs the handler of a signal only after C code in the main thread has returned. `stop` must make the C code
    return.
    """
    if not _can_handle():
        yield
        return
    import socket

    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while signals := receiver.recv(1):
            if signals[0] == signal.SIGINT:
                stop()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        sender.close()
        thread.join()
        receiver.close()


@contextmanager
def note_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether the user has pressed Ctrl-C inside the block.

    The code in the block must call the function from time to time. If the function returns True, the code ends early
    with a partial result. A second Ctrl-C raises KeyboardInterrupt.
    """
    is_interrupted = False
    if not _can_handle():
        yield lambda: is_interrupted
        return

    def remember(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: is_interrupted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
