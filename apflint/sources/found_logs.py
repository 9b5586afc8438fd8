"""Finds the audit logs that a command names, and separates them from manifests in the same directory."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.sources.audit_logs import AuditLogFile, find_audit_logs
from apflint.sources.discovery import SUFFIXES
from apflint.sources.log_names import WHOLE_LOG, OmittedObjects, ReadPeriod
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator


class FoundLogs(NamedTuple):
    """The log files that the arguments of a command name."""

    files: list[AuditLogFile]
    ignored: frozenset[str]
    """Real paths of the logs. Commands do not read these files as manifests, even if their names end with `.json`."""
    manifests: tuple[str, ...] = ()
    """Files in the named directories that have APF objects, and no events. They are not in `files`."""

    def describe_unused(self, words: Collection[str]) -> Iterator[str]:
        """Yield a clause about each manifest that the command does not use: neither as a log, nor in the configuration.

        `words` are the source arguments. If there are no source arguments, the manifests in the current directory are
        the configuration. If there are source arguments, nothing is yielded, because the user has chosen the
        configuration.
        """
        here = os.path.join(os.path.realpath("."), "") if self.manifests else ""
        for path in () if words else self.manifests:
            if not os.path.realpath(path).startswith(here):
                yield f"{path}: this file is a manifest, so apflint does not read it as a log. To use the objects in the file, add -f {shlex.quote(path)}"


NO_LOGS = FoundLogs([], frozenset())


def find_logs(
    paths: Iterable[str],
    *,
    period: ReadPeriod = WHOLE_LOG,
    report_omitted: Callable[[OmittedObjects], object] = lambda _: None,
    keeps_urls: bool = False,
) -> FoundLogs:
    """Return the log files in `paths`, as `find_audit_logs` does. Manifests in a directory with logs are not log files.

    A file that the user names is always a log file. If it is a manifest, the command later reports that the file has no
    events. `FoundLogs.ignored` does not contain manifests, because manifests in the current directory are part of the
    configuration. Raises UserError as `find_audit_logs` does.
    """
    named = list(paths)
    files = find_audit_logs(named, period=period, report_omitted=report_omitted, keeps_urls=keeps_urls)
    manifests = {file.path for file in files if _holds_manifests(file)}
    logs = [file for file in files if file.path in named or file.path not in manifests] or files
    ignored = frozenset(os.path.realpath(file.path) for file in files if file.path not in manifests)
    left_out = manifests.difference(file.path for file in logs)
    return FoundLogs(logs, ignored, tuple(sorted(left_out)))


def _holds_manifests(file: AuditLogFile) -> bool:
    """Return whether a file contains APF objects and no audit events.

    Return False for a file that cannot be read. The file then counts as a log, and reading the log reports the problem.
    """
    if file.inode is None or not file.path.endswith(SUFFIXES):
        return False
    # imported here, because most logs have other suffixes
    from apflint.sources.evidence_files import holds_objects, recognize

    try:
        return recognize(file) == "manifest" and holds_objects(file.path)
    except (OSError, UserError):
        return False
