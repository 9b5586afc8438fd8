"""Exceptions become one line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

import pytest

from apflint.cli.error_reporting import run_and_report_errors
from apflint.cli.exit_codes import ExitCode
from apflint.user_error import UserError


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (UserError("a\x1b mistake"), ExitCode.ERROR, "apflint: a\\x1b mistake\n"),
        (UserError("x" * 20_000), ExitCode.ERROR, f"apflint: {'x' * 10_000}...\n"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "apflint: interrupted\n"),
        (OSError(13, "Permission denied", "x.yaml"), ExitCode.ERROR, "apflint: x.yaml: Permission denied\n"),
        (
            OSError(28, "No space left on device"),
            ExitCode.ERROR,
            "apflint: cannot write to standard output: No space left on device\n",
        ),
        (OSError("odd"), ExitCode.ERROR, "apflint: odd\n"),
        (
            LookupError("x"),
            ExitCode.ERROR,
            "apflint: internal error: LookupError: x. This is a bug in apflint. Set APFLINT_DEBUG=1 to see the traceback, and please report it\n",
        ),
    ],
)
def test_exception_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    exit_code: ExitCode,
    message: str,
) -> None:
    monkeypatch.delenv("APFLINT_DEBUG", raising=False)

    def command() -> int:
        raise error

    assert run_and_report_errors(command) == exit_code
    assert capsys.readouterr() == ("", message)


def test_internal_error_is_raised_for_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APFLINT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run_and_report_errors(lambda: 1 // 0)


def test_closed_pipe_is_not_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream, patch.object(sys, "stdout", stream):
        assert run_and_report_errors(lambda: stream.write("x" * 100_000) and 1) == ExitCode.OK
        stream.write("more")
        stream.flush()  # does not raise, because the output was discarded
