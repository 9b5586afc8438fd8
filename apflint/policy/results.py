"""The results of running suites."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from apflint.location import Span
from apflint.record import NamedTuple
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from apflint.load.source import Source
    from apflint.location import Path
    from apflint.policy.expectation import Destination, Expectation
    from apflint.policy.fields import Mistake
    from apflint.proofs.witness import Witness


class Result(NamedTuple):
    """The result of one expectation."""

    test: Expectation
    passed: bool
    expected: str
    """A clause without a period."""
    happened: str = ""
    """The same about what happens instead; empty if it passed."""
    reasons: tuple[str, ...] = ()
    """Sentences that explain why."""
    path: Path = ()
    """The value in the suite that does not hold; empty if it passed."""
    span: Span = Span(1, 1, 1, 1)
    """The position of `path`, or of the key that determines the type of the expectation."""
    request: Witness | None = None
    """The request of an example, or a request that refutes a property."""
    destination: Destination | None = None
    """Where that request goes."""

    @property
    def name(self) -> str:
        """The name in the suite, or else what is expected."""
        return self.test.name or self.expected


class FileResult(NamedTuple):
    """The results of a file, or the mistakes that make it no valid suite."""

    name: str
    """The file as named on the command line."""
    source: Source | None
    """None if the file cannot be read."""
    kubernetes: str
    manifests: tuple[str, ...]
    """Paths relative to the current directory."""
    results: tuple[Result, ...]
    mistakes: tuple[Mistake, ...] = ()

    @property
    def passed(self) -> int:
        """Number of expectations that hold."""
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> int:
        """Number of expectations that do not hold."""
        return len(self.results) - self.passed

    def explain_command(self, result: Result) -> str | None:
        """Return the command that explains the request of a result, or None if its groups cannot be given as arguments."""
        if result.request is None or result.request.words is None:
            return None
        words = ["apflint", "explain", *result.request.words]
        for path in self.manifests or (os.devnull,):  # without -f, `explain` reads the current directory
            words += ["-f", path]
        if self.kubernetes != NEWEST.name:
            words += ["--kubernetes", self.kubernetes]
        return shlex.join(words)


class Run(NamedTuple):
    """The results of all files, in order."""

    files: tuple[FileResult, ...]

    @property
    def status(self) -> int:
        """Exit status: 2 for a file that is not a valid suite, 1 for an expectation that does not hold, otherwise 0."""
        if any(file.mistakes for file in self.files):
            return 2
        return int(any(file.failed for file in self.files))
