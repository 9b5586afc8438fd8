"""What a run of suites gave, and how it is printed: the formats are modules beside this one."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from apflint.releases import NEWEST

if TYPE_CHECKING:
    from apflint.load.source import Source
    from apflint.policy.reading import Mistake
    from apflint.policy.running import Outcome


class FileResult(NamedTuple):
    """One file: its outcomes, or why there are none."""

    name: str
    """The file as it was named."""
    source: Source | None
    """None: it could not be read."""
    kubernetes: str
    manifests: tuple[str, ...]
    """Paths from where the run was started."""
    outcomes: tuple[Outcome, ...]
    mistakes: tuple[Mistake, ...] = ()

    @property
    def passed(self) -> int:
        """How many expectations hold."""
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def failed(self) -> int:
        """How many do not."""
        return len(self.outcomes) - self.passed


class Run(NamedTuple):
    """All files of a run, in order."""

    files: tuple[FileResult, ...]

    @property
    def status(self) -> int:
        """The exit status: 2 for a file that is no suite, 1 for an expectation that does not hold, otherwise 0."""
        if any(tested.mistakes for tested in self.files):
            return 2
        return int(any(tested.failed for tested in self.files))


def command(tested: FileResult, outcome: Outcome) -> str | None:
    """The command line that answers the same request; None where its groups cannot be said there."""
    if outcome.request is None or outcome.request.words is None:
        return None
    words = ["apflint", "explain", *outcome.request.words]
    for path in tested.manifests or (os.devnull,):  # without any, `explain` reads what is in the folder
        words += ["-f", path]
    if tested.kubernetes != NEWEST.name:
        words += ["--kubernetes", tested.kubernetes]
    return shlex.join(words)
