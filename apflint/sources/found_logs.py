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
    """The files of audit logs that a command names."""

    files: list[AuditLogFile]
    ignored: frozenset[str]
    """Real paths of the logs. Commands do not read these files as manifests, even if their names end with `.json`."""
    manifests: tuple[str, ...] = ()
    """Files in the named directories that have APF objects, and no events. They are not in `files`."""

    def describe_unused(self, words: Collection[str]) -> Iterator[str]:
        """Yield a clause for each manifest that is neither read as a log nor part of the configuration.

        `words` are the source arguments. If there are none, the configuration consists of the manifests in the current
        directory. If there are some, nothing is yielded, because the user has chosen the configuration.
        """
        here = os.path.join(os.path.realpath("."), "") if self.manifests else ""
        for path in () if words else self.manifests:
            if not os.path.realpath(path).startswith(here):
                yield f"{path}: a manifest, which is not read as a log. To use its objects, add -f {shlex.quote(path)}"


NO_LOGS = FoundLogs([], frozenset())


def find_logs(
    paths: Iterable[str],
    *,
    period: ReadPeriod = WHOLE_LOG,
    report_omitted: Callable[[OmittedObjects], object] = lambda _: None,
    keeps_urls: bool = False,
) -> FoundLogs:
    """Return the files of audit logs as `find_audit_logs` does, without the manifests in directories.

    A file that the user names is always a log. If it is a manifest, the command later reports that the file has no
    events. Manifests are not in `FoundLogs.ignored`, because manifests in the current directory are part of the
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
    """Return whether a file has APF objects and no events.

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
