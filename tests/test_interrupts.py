"""Ctrl-C during C code that does not look for signals."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading

import pytest

from apflint.interrupts import call_on_interrupt

ENDLESS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers"


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process on Windows")
def test_interrupt_ends_a_query_that_does_not_look_for_signals() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    database = sqlite3.connect(":memory:", check_same_thread=False)
    threads = threading.active_count()
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt), call_on_interrupt(database.interrupt):
            database.execute(ENDLESS)
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.set_wakeup_fd(-1) == -1, "the former descriptor is restored"
    assert database.execute("SELECT 1").fetchall() == [(1,)]
    assert threading.active_count() <= threads + 1  # the thread of the timer may not have ended yet


def test_another_thread_gets_no_interrupts() -> None:
    calls: list[str] = []

    def work() -> None:
        with call_on_interrupt(lambda: calls.append("stop")):
            calls.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert calls == ["work"]
