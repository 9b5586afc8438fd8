"""Reads the configurations that are in force one after another while a log is written.

The user names these configurations with `-f TIME=SOURCE`. With `--history`, each commit of a `git:`
source is a configuration.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC
from typing import TYPE_CHECKING

from apflint.load.source_text import GIT_PREFIX
from apflint.named_tuple import NamedTuple
from apflint.replay.filters import parse_moment
from apflint.replay.running import ConfigurationChange
from apflint.run import read
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from apflint.sources.audit_logs import AuditLogFile
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest

_LOOKS_LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\d[^=/]*=")
_LONG_REQUEST_SECONDS = 3600
"""Maximum duration of a request in seconds. A log has an event at the end of a request, but the configuration at the start of
the request applies. So the first event of a log may belong to a request that started up to this long before. By default,
watches end after at most an hour:
`--min-request-timeout` of kube-apiserver is 1,800 s, multiplied by a factor of up to 2."""
_MAX_COMMITS = 50
"""Maximum number of commits whose configurations are read. Reading each takes up to 0.1 s."""
_FIRST_EVENTS_BYTES = 1


class TimedSources(NamedTuple):
    """The source arguments of `-f`, grouped by the time from which they are in force."""

    first: tuple[str, ...]
    """Source arguments without a time."""
    later: dict[int, tuple[str, ...]]
    """Maps times in microseconds since 1970, in ascending order, to the source arguments that are in force from this
    time on."""


class ConfigurationHistory(NamedTuple):
    """The configurations that are in force one after another while a log is written."""

    first: EffectiveConfiguration
    later: tuple[tuple[int, EffectiveConfiguration], ...] = ()
    """Configurations with their times in microseconds since 1970, in ascending order."""

    @property
    def changes(self) -> tuple[ConfigurationChange, ...]:
        """The start time and the configuration of each item of `later`, in the form that a replay of a log takes."""
        return tuple(ConfigurationChange(time, found.effective) for time, found in self.later)

    @property
    def later_descriptions(self) -> tuple[tuple[int, str], ...]:
        """Return (start in microseconds since 1970, description) of each configuration after the first one."""
        return tuple((time, found.description) for time, found in self.later)

    def describe_at(self, time: int) -> str:
        """Return the description of the configuration that is in force at a time, in microseconds since 1970."""
        position = bisect_right([start for start, _ in self.later], time)
        return self.later[position - 1][1].description if position else self.first.description


def split_words(words: Sequence[str], zone: tzinfo = UTC) -> TimedSources:
    """Group source arguments by the time from which they are in force (`TIME=SOURCE`).

    A file name that begins with a time and `=` must be written with `./` before it. Raises UserError if a time is
    invalid, or if all source arguments have a time, because the first configuration is then unknown.
    """
    first: list[str] = []
    later: dict[int, list[str]] = {}
    for word in words:
        if not _LOOKS_LIKE_TIME.match(word):
            first.append(word)
            continue
        text, _, source = word.partition("=")
        moment = parse_moment("-f", text, zone)
        assert moment is not None
        if not source:
            raise UserError(f"-f: {quote(word)} needs a source after the time, as in {text}=after/")
        later.setdefault(moment.microseconds, []).append(source)
    if later and not first:
        raise UserError("-f: name the first configuration without a time, as in -f before/ -f TIME=after/")
    return TimedSources(tuple(first), {time: tuple(later[time]) for time in sorted(later)})


def read_history(
    request: InputRequest, timed: TimedSources, files: Sequence[AuditLogFile] | None
) -> ConfigurationHistory:
    """Read the configurations of `timed`. If `files` (the log) is not None, read the configurations of git commits instead.

    The commits are the last commit before the log and all commits during the log (`--history`). Raises UserError as
    `read_configuration` does, and if the git history does not contain a commit before the log.
    """
    if files is None:
        later = tuple((time, read(request._replace(words=words))) for time, words in timed.later.items())
        return ConfigurationHistory(read(request._replace(words=timed.first)), later)
    if timed.later:
        raise UserError("--history and -f TIME=SOURCE cannot be combined: both determine the times of the changes")
    words = timed.first
    revisions = [word for word in words if word.startswith(GIT_PREFIX)]
    if len(revisions) != 1:
        raise UserError("--history needs exactly one source git:REVISION[:PATH], as in -f git:main:manifests --history")
    versions = _choose_commits(revisions[0], _find_first_second(files))
    found = [
        (time, read(request._replace(words=tuple(name if word == revisions[0] else word for word in words))))
        for time, name in versions
    ]
    return ConfigurationHistory(found[0][1], tuple((time * 1_000_000, version) for time, version in found[1:]))


def _choose_commits(name: str, start: int) -> list[tuple[int, str]]:
    """Return (time in seconds, source argument) of each commit that is in force at `start` or later.

    `name` is a source such as `git:main:manifests`. The first item is the last commit at or before
    `start` that changed the files of this source. All later commits that changed these files follow, in
    order.

    Raises UserError if there is no commit at or before `start`, or if there are too many commits.
    """
    from apflint.sources.git import list_history

    commits = list_history(name)
    position = next((number for number, commit in enumerate(commits) if commit.time <= start), None)
    if position is None:
        raise UserError(
            f"--history: {name} has no commit before the log. Name the configuration with -f TIME=SOURCE instead"
        )
    if position > _MAX_COMMITS:
        raise UserError(
            f"--history: {name} has {position} commits since the start of the log, and apflint reads at most {_MAX_COMMITS}."
            " In -f git:REVISION, name the last commit before the end of the log"
        )
    # Clocks differ, so a commit may have an earlier time than an ancestor. Such a commit gets the time of the ancestor.
    chosen, last = [(commits[position].time, commits[position].name)], start
    for commit in reversed(commits[:position]):
        last = max(last, commit.time)
        chosen.append((last, commit.name))
    return chosen


def _find_first_second(files: Sequence[AuditLogFile]) -> int:
    """Return a time in seconds since 1970 before which no request of the log arrived.

    Raises UserError if a file is a stream, which cannot be read twice, or if a file does not begin with events.
    """
    from apflint.replay.loaded_log import Wanted
    from apflint.replay.python_engine import EventReader

    times: list[int] = []

    def store(table: str, rows: list[Sequence[object]]) -> None:
        if table == "request":
            times.extend(int(str(row[_RECEIVED])) for row in rows)

    for file in files:
        if file.inode is None:
            raise UserError(f"--history: {file.name} cannot be read twice. Save the log to a file")
        reader = EventReader(Wanted(), (), store)
        reader.read_file(file, max_bytes=_FIRST_EVENTS_BYTES)
        reader.flush()
    if not times:
        raise UserError("--history: the log does not begin with audit events, so its time is unknown")
    return min(times) // 1_000_000 - _LONG_REQUEST_SECONDS


_RECEIVED = 4
"""Index of the column `received` in the rows that an engine stores."""
