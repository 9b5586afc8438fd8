"""kube-apiserver's own log: line numbers are correct across blocks and damaged parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from support.audit_logs import write_log

from apflint.replay import server_decisions
from apflint.replay.loaded_log import UnreadableLine
from apflint.replay.server_decisions import _read_lines, _Traffic
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

    from apflint.sources.audit_logs import AuditLogFile


class Block(NamedTuple):
    """A part of a file, or a problem of one line."""

    data: bytes = b""
    problem: str = ""


def test_numbers_of_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged line counts as one line. A blank line is not yielded, but counts as a line."""
    blocks = [
        *(Block(b"one\n\n  \nfour\n"), Block(problem="too long"), Block(b"six\n"), Block(problem="damaged")),
        *(Block(problem="cut"), Block(b"nine\xff\nten\n"), Block(b"\nlast")),
    ]

    def read_blocks(_file: AuditLogFile, report: Callable[[int], object]) -> Iterator[Block]:
        for block in blocks:
            yield block
            if not block.problem:
                report(len(block.data))

    monkeypatch.setattr(server_decisions, "read_blocks", read_blocks)
    (file,) = find_audit_logs([str(write_log(tmp_path / "a.log", []))])
    damaged: list[UnreadableLine] = []
    sizes: list[int] = []
    lines = list(_read_lines(file, damaged, sizes.append))
    assert lines == [(1, "one"), (4, "four"), (6, "six"), (9, "nine\ufffd"), (10, "ten"), (12, "last")]
    assert damaged == [
        UnreadableLine(file.name, 5, "too long"),
        UnreadableLine(file.name, 7, "damaged"),
        UnreadableLine(file.name, 8, "cut"),
    ]
    assert sizes == [len(block.data) for block in blocks if not block.problem]


def test_wait_of_the_only_request_is_its_percentile() -> None:
    traffic = _Traffic()
    traffic.waits.append(0.7)
    traffic.requests = 1
    assert traffic.summarize(("all", "low")).p99_wait == 0.7
    traffic.requests = 100  # the wait of 99 requests was too short to be logged
    assert traffic.summarize(("all", "low")).p99_wait is None
